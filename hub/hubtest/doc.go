// Package hubtest is a hub on this machine, for tests. It answers as the real one
// does, as far as huggingface_hub looks: the information on a revision, the list of
// its files, and the files, the large ones by way of a store at another address.
package hubtest
