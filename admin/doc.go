// Package admin is what operators ask of a running baton, on an address of its
// own: which workers and requests there are, draining a worker, the level of the
// log, profiles.
//
//	GET  /admin/workers               the workers, why one is out, and between which ones answers move
//	GET  /admin/requests              the requests that are being answered
//	POST /admin/workers/{id}/drain    take a worker out of rotation
//	POST /admin/workers/{id}/undrain  bring it back
//	GET  /admin/log-level             PUT changes it
//	GET  /debug/pprof/...             Go's profiles
//
// There is no password: whoever can connect may do all of it, which is why the
// address is a loopback one unless it was set to something else. A browser on the
// same machine can connect too, on behalf of any page, so requests that a page of
// another origin has made are refused (guard.go).
package admin
