package sim

import "baton/engine"

// Reference returns the generation that a worker of this configuration gives
// req when nothing fails. It ends with the finish reason that goes with it; an
// empty one means that the worker would refuse the prompt as too long.
func Reference(config Config, req *engine.Request) ([]engine.TokenID, engine.FinishReason) {
	config = config.withDefaults()
	if n := len(req.TokenIDs); n == 0 || n >= config.ContextLength {
		return nil, ""
	}
	g := newGeneration(&config, req.TokenIDs, req.Sampling, req.Stop)
	g.constrain(req.Constraint)
	var ids []engine.TokenID
	for {
		id, finish := g.next()
		ids = append(ids, id)
		if finish != "" {
			return ids, finish
		}
	}
}

// Reference is the package's Reference for the configuration of this worker.
func (e *Engine) Reference(req *engine.Request) ([]engine.TokenID, engine.FinishReason) {
	return Reference(e.config, req)
}
