package harness

import (
	"os"

	"baton/engine/sim"
	"baton/model"
)

// SimModels returns a set with the model of the simulated workers, as
// sim.DefaultModelName, and the function that removes its folder.
func SimModels() (models *model.Set, remove func(), err error) {
	dir, err := os.MkdirTemp("", "baton-sim-model-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	if err = sim.WriteModel(dir); err == nil {
		models, err = model.NewSet(model.Options{Paths: map[string]string{sim.DefaultModelName: dir}})
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return models, remove, nil
}
