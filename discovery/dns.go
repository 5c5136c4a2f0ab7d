package discovery

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lookUpTimeout bounds one look-up, with all that the resolver tries for it.
const lookUpTimeout = 15 * time.Second

// A Resolver asks the domain name system. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// SystemResolver asks the name servers of this machine. If one of several questions
// that belong together fails (A and AAAA, the parts of the search list) all have
// failed: half an answer would look like workers that are gone.
var SystemResolver Resolver = &net.Resolver{PreferGo: true, StrictErrors: true}

// A Name is what is looked up, and what its workers have in common.
type Name struct {
	Kind   string // the engine, as stated; "" = ask the workers
	Scheme string // http or https
	Host   string // a name; for Services that of the SRV records
	Port   string // of all workers; for Services the records say it
}

// Addresses returns the Source of the workers behind the A and AAAA records of a
// name, such as that of a headless service: one worker each, at the name's port. The
// name is looked up every interval.
func Addresses(name Name, interval time.Duration, resolver Resolver, log *slog.Logger) Source {
	return &records{name: name.Host, interval: interval, log: log, find: func(ctx context.Context) ([]Target, error) {
		ips, err := resolver.LookupNetIP(ctx, "ip", name.Host)
		if err != nil {
			return nil, err
		}
		for i := range ips {
			ips[i] = ips[i].Unmap()
		}
		slices.SortFunc(ips, netip.Addr.Compare)
		var targets []Target
		for _, ip := range slices.Compact(ips) {
			url, err := targetURL(name.Scheme, ip.String(), name.Port)
			if err != nil {
				return nil, err
			}
			targets = append(targets, Target{URL: url, Kind: name.Kind})
		}
		return targets, nil
	}}
}

// Services returns the Source of the workers that the SRV records of a name point at
// (RFC 2782), by their names and ports. Priorities and weights count for nothing.
// The name is looked up every interval.
func Services(name Name, interval time.Duration, resolver Resolver, log *slog.Logger) Source {
	return &records{name: name.Host, interval: interval, log: log, find: func(ctx context.Context) ([]Target, error) {
		_, found, err := resolver.LookupSRV(ctx, "", "", name.Host)
		if err != nil {
			return nil, err
		}
		var targets []Target
		for _, r := range found {
			if r.Target == "." {
				continue // RFC 2782: the service is decidedly not available
			}
			url, err := targetURL(name.Scheme, strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))
			if err != nil {
				return nil, err
			}
			targets = append(targets, Target{URL: url, Kind: name.Kind})
		}
		slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.URL, b.URL) })
		return slices.Compact(targets), nil
	}}
}

// records is the Source of what find finds every interval.
type records struct {
	name     string
	interval time.Duration
	log      *slog.Logger
	find     func(ctx context.Context) ([]Target, error)

	targets []Target
	wrong   trouble
}

// Run implements Source.
func (r *records) Run(ctx context.Context, report func([]Target)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if r.lookUp(ctx) {
			report(slices.Clone(r.targets))
		}
		timer.Reset(r.interval)
	}
}

// lookUp brings targets up to date, and returns whether they have changed.
func (r *records) lookUp(ctx context.Context) (changed bool) {
	lookUpCtx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	found, err := r.find(lookUpCtx)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		r.complain(err)
		return false
	case len(found) == 0:
		r.complain(errNoRecords)
		return false
	case len(found) > maxTargets:
		r.complain(errTooMany(len(found)))
		return false
	}
	if r.wrong != none {
		r.wrong = none
		r.log.Info("the name of the workers can be looked up again", "name", r.name, "workers", len(found))
	}
	changed = !slices.Equal(found, r.targets)
	r.targets = found
	return changed
}

// trouble is a sort of failed look-up. The words of two failures differ, by a port
// number for example, where the trouble is the same.
type trouble uint8

const (
	none trouble = iota
	nothingFound
	failed
)

// errNoRecords is an answer without records.
var errNoRecords = errors.New("there are no records of this name")

// complain says why a look-up gave nothing that can be used, unless the last one had
// the same trouble.
//
// That there are no records is no reason to give workers up, however long it lasts:
// it is also what a service without ready endpoints looks like, a zone that is being
// loaded, or a name that was changed before the flag was.
func (r *records) complain(err error) {
	now := failed
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound || errors.Is(err, errNoRecords) {
		now = nothingFound
	}
	if now == r.wrong {
		return
	}
	r.wrong = now
	what := "the name of the workers cannot be looked up; those that were found before stay"
	if r.targets == nil {
		what = "the name of the workers cannot be looked up; baton keeps trying"
	}
	r.log.Warn(what, "name", r.name, "workers", len(r.targets), "err", err)
}
