// Package soak lets the built binary run for long, under constant load, while
// something goes wrong with its workers every second: they are killed, frozen,
// drained, and their streams broken. Strict clients compare every text with the
// one without faults. At the end nothing may be left: goroutines, descriptors,
// memory and gauges are where they were.
//
// poison_test.go lets one client's prompt kill workers, and everybody else be
// served. speed_test.go measures, over sockets, how soon a killed worker's streams are
// asked for elsewhere, and whether the streams that run there flow meanwhile.
//
//	go test ./test/soak -v                                    20 seconds
//	go test ./test/soak -v -run AtOnce -args -streams 500
//	go test ./test/soak -v -timeout 2h -run Soak -args -for 1h
package soak
