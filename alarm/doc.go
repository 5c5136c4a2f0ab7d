// Package alarm rings many alarms with one timer of the runtime.
//
// A [time.Timer] is cheap to make and not cheap to have: one that becomes the
// earliest in a process that waits wakes a thread, to wait anew for not as long,
// and one made by [time.AfterFunc] that fires starts a goroutine, for which a
// thread is woken too. With a timer in every stream the first costs several
// microseconds on the way to a first token, and the second, once a second and
// stream, as much as the tokens where tokens are as rare.
//
// A [Clock] has one timer for all its alarms. An alarm that is later than what the
// timer is set to does not touch it, and one that is stopped does not either. What
// need not be exact rings together with the others of its kind, see [Clock.Set]. A
// [Silence] is what most alarms here are about.
package alarm
