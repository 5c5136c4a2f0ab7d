package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"baton/admin"
)

// workers prints the workers of a running baton, and between which of them the
// answers of each model move.
func (o operator) workers(ctx context.Context, stdout io.Writer) error {
	var list admin.WorkersReply
	if err := o.ask(ctx, http.MethodGet, "/admin/workers", &list); err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WORKER\tSTATE\tRUNNING\tKIND\tMODELS\tREASON")
	for _, w := range list.Workers {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", w.ID, w.State, w.InFlight,
			cmp.Or(w.Kind, "-"), cmp.Or(strings.Join(w.Models, ","), "-"), w.Reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, g := range list.Groups {
		printGroup(&b, g)
	}
	for _, h := range list.Hints {
		fmt.Fprintf(&b, "\n%s have the same tokenizer; if they are the same model, these flags of serve make them one:\n  %s\n", strings.Join(h.Models, " and "), h.Flags)
	}
	_, err := io.WriteString(stdout, b.String())
	return err
}

// printGroup says what an operator wants to know of a model: where its answers may
// go on, and what does not survive that.
func printGroup(b *strings.Builder, g admin.Group) {
	fmt.Fprintf(b, "\n%s", g.Model)
	if g.Base != "" {
		fmt.Fprintf(b, ", a LoRA adapter of %s", g.Base)
	}
	if len(g.Workers) == 1 {
		fmt.Fprintf(b, ": on %s only, so its answers cannot move\n", member(g.Workers[0], g.Model))
		return
	}
	fmt.Fprintf(b, ": answers move between %d workers\n", len(g.Workers))
	for _, w := range g.Workers {
		fmt.Fprintf(b, "  %s\n", member(w, g.Model))
	}
	if g.SmallestContext != g.LargestContext {
		fmt.Fprintf(b, "  contexts differ: an answer beyond %d tokens moves to workers with more only\n", g.SmallestContext)
	}
	if len(g.DifferentParameters) > 0 {
		fmt.Fprintf(b, "  understood differently, so that answers with them move, but not exactly: %s\n", strings.Join(g.DifferentParameters, ", "))
	}
	if len(g.PartialParameters) > 0 {
		fmt.Fprintf(b, "  not everywhere, so that answers with them move between some of the workers only: %s\n", strings.Join(g.PartialParameters, ", "))
	}
}

// member is a worker of the model as a person reads it.
func member(w admin.Member, model string) string {
	about := []string{w.Kind}
	if w.ContextLength > 0 {
		about = append(about, fmt.Sprintf("%d tokens", w.ContextLength))
	}
	if w.Name != model {
		about = append(about, "calls it "+w.Name)
	}
	return w.ID + " (" + strings.Join(about, ", ") + ")"
}
