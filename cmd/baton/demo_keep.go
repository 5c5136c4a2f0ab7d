package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// keepLook is how often --keep looks after the workers.
const keepLook = 200 * time.Millisecond

// keep leaves everything running, the killed workers included, until Ctrl-C.
func (d *demo) keep(stop context.Context) error {
	if err := d.fleet.revive(stop); err != nil {
		return err
	}
	d.screen.say("Everything is running again. Ask:")
	d.screen.blank()
	fmt.Fprintln(d.screen.w, d.fleet.curl()) // at the line's beginning, for copying
	d.screen.blank()
	d.screen.say("and kill a worker while it writes:")
	d.screen.blank()
	for _, w := range d.fleet.workers {
		d.sayKill(w)
	}
	d.screen.blank()
	d.screen.say("%s", d.screen.paint(dim, "What happens is shown here. Ctrl-C ends all of it."))
	d.screen.blank()
	tick := time.NewTicker(keepLook)
	defer tick.Stop()
	for {
		select {
		case <-stop.Done():
			d.screen.blank()
			return nil
		case s := <-d.fleet.seams:
			d.saySeam(s)
		case <-tick.C:
			if err := d.restart(stop); err != nil {
				return err
			}
		}
	}
}

// restart starts workers again that somebody has killed, so that there always is
// one to go to.
func (d *demo) restart(stop context.Context) error {
	for _, w := range d.fleet.workers {
		if !w.process.hasEnded() {
			continue
		}
		w.dead = true
		d.screen.say("%s %s; it is started again", d.screen.paint(red, "✗"), d.screen.paint(w.style, w.name)+" was killed")
		if err := d.fleet.revive(stop); err != nil {
			if stop.Err() != nil {
				return nil
			}
			return err
		}
		d.sayKill(w)
	}
	return nil
}

func (d *demo) sayKill(w *demoWorker) {
	d.screen.say("  %-16s %s", killCommand(w.process.pid()), d.screen.paint(w.style, "# "+w.name))
}

func killCommand(pid int) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf("taskkill /F /PID %d", pid)
	}
	return fmt.Sprintf("kill -9 %d", pid)
}
