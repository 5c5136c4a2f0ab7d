// Command bench measures what the frontend costs, by racing it.
//
//	go run ./test/bench            # some minutes, loopback only
//	go run ./test/bench -quick     # half a minute: does it run at all
//	go run ./test/bench -compare   # beside other gateways
//	go run ./test/bench -guard     # fails if baton has become more expensive
//	go run ./test/bench -lose 9000 # half of so many streams lose their worker
//
// Absolute times say more about the machine, and about what else runs on it,
// than about a program. So two contestants run at the same time, each with half
// of the load, against the same fake worker and the same client, and only the
// ratio between them is read. The yardstick is the floor: the least that a
// gateway which owns the tokens does with net/http on both sides. Raced against
// itself it shows how far a ratio of 1 can be off.
//
// The program is its own worker and its own floor: it starts itself in these
// roles as processes. race.go is the plot, open.go the one of streams that are
// only open, loss.go the one of streams that lose their worker, which gaps.go looks
// at; compare.go and guard.go tell it with others and with bounds.
// client.go and load.go make the load, worker.go and floor.go answer it, peers.go
// has the other gateways, process.go starts what is measured and usage_linux.go
// measures it, words.go is the language that they share, table.go prints.
package main
