package model

// ResolveAdapter is Resolve for a LoRA adapter of base: without a path of its own it
// has the base's files, because an adapter's folder usually holds no tokenizer.
func (s *Set) ResolveAdapter(worker, own string, base *Model) (public string, m *Model, err error) {
	public = s.options.public(own)
	if s.options.Paths[public] != "" {
		return s.Resolve(worker, own, "")
	}
	m, err = s.join(public, origin{worker, own}, base)
	return public, m, err
}
