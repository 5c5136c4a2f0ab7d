// Package hub finds the small files of a model in the local cache of the Hugging
// Face hub and, where they are missing, fetches them from the hub into it.
//
// A [Ref] names what is wanted: a repository, a revision, perhaps one .gguf file
// of it (ref.go). [Hub.Find] looks on this machine only, [Hub.Fetch] asks the hub
// (fetch.go):
//
//	list      which files the repository has at which commit        client.go
//	choose    the tokenizer's, the template's, the configuration's  files.go
//	download  one after the other, resumed where it was broken off  download.go
//	link      into the cache, as huggingface_hub has it             cache.go
//
// Weights are never fetched. Of a .gguf file only the header is, by range requests
// (header.go); it goes to a folder of our own, because a part of a file has no
// place in the hub's cache.
//
// # The cache
//
// It is shared with Python's huggingface_hub, which every engine but llama.cpp
// uses, so its layout is followed to the letter: what one fetched the other finds.
//
//	CACHE/models--ORG--NAME/refs/main                    the commit that "main" was
//	CACHE/models--ORG--NAME/blobs/ETAG                   the content of a file
//	CACHE/models--ORG--NAME/snapshots/COMMIT/config.json a relative link to a blob
//	CACHE/models--ORG--NAME/.no_exist/COMMIT/NAME        the commit has no such file
//	CACHE/models--ORG--NAME/trees/COMMIT.json            all files of the commit (read only)
//	CACHE/.locks/models--ORG--NAME/ETAG.lock             held while a blob is made
//
// # Trust
//
// Nothing of what the hub says becomes a path or takes memory unchecked: names of
// files are compared with those that are wanted, commits and etags have a form,
// every length has a named limit, and what was loaded is compared with the hash
// that its etag is. The token is sent to the origin of HF_ENDPOINT and to no other,
// whatever is redirected, and it appears in no error and no record.
package hub
