// Package credentials reads the files by which clients, the frontend and workers
// know each other: keys and certificates.
//
// Such files are replaced while the process runs, by a person, a renewal job or
// a cluster that mounts them, so they are looked at again when they are used, at
// most once a second: one stat each, no goroutine, no watch of the file system
// (which mounted volumes do not support anyway). What cannot be read, or makes no
// sense, changes nothing: the last good content stays in force, and the log says
// so once. At the start there is no last good content, so then it is an error.
//
// Nothing here shows a key: not an error, not the log. Errors are sentences that
// name the flag and the file.
package credentials
