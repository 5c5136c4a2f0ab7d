// Package discovery says where the workers are, and says it anew when that changes.
//
// A [Source] reports the whole set of workers, first when it knows it and then
// each time that it may have changed:
//
//	Static      the set is known and stays                    discovery.go
//	File        a file in the shape of Prometheus' file_sd    file.go, format.go
//	Addresses   the A and AAAA records of a name              dns.go
//	Services    the SRV records of a name                     dns.go
//	Join        several of them together                      discovery.go
//
// # Stale beats partial
//
// A set that is reported is acted upon: workers that it lacks get no more requests.
// So a source that cannot say for sure where all workers are says nothing: a
// look-up that failed or found nothing, a file that is gone, empty, half written or
// makes no sense change nothing. The log says so once. What is kept too long does
// no harm, because the router asks no worker that does not answer.
//
// Only what says clearly that there are no workers is believed: an empty list in a
// file.
//
// # Looking
//
// Files are looked at once a second, by stat, because a watch of the file system
// does not see what happens behind the links of a mounted volume. A changed file is
// read twice, a moment apart, and counts when both readings are equal: writing may
// be under way.
//
// Nothing here speaks with a worker, or knows what a kind of worker means.
package discovery
