package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"baton/config"
	"baton/credentials"
	"baton/engine"
	"baton/engine/detect"
	"baton/engine/transport"
	"baton/model"
)

const (
	probeConnectTimeout = 3 * time.Second // the default of serve
	// maxProbedModels bounds of how many models of a worker a token is asked for.
	maxProbedModels = 8
	// probePrompt is what one token is generated after.
	probePrompt = "The capital of France is"
)

// runProbe is `baton probe`: it asks one worker all that serve would ask it, and
// shows what it says.
func runProbe(args []string, stdout io.Writer) error {
	cfg, err := config.LoadProbe(args)
	switch {
	case errors.Is(err, config.ErrHelp):
		return probeHelp(stdout)
	case err != nil:
		return err
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("it took longer than --timeout %v: %w", cfg.Timeout, context.DeadlineExceeded))
		defer cancel()
	}
	p, err := newProber(cfg)
	if err != nil {
		return err
	}
	failure := p.probe(ctx)
	report := p.report(failure)
	if cfg.JSON {
		err = json.NewEncoder(stdout).Encode(report)
	} else {
		err = report.print(stdout)
	}
	if failure != nil {
		return errors.New(report.Problem)
	}
	return err
}

// A prober asks one worker. What it finds stays in it, also when a later question
// fails.
type prober struct {
	cfg    *config.Probe
	wire   *wire
	link   *transport.Link
	attach *attacher // what serve would make of the worker

	client  engine.Client
	info    engine.Info
	loading bool
	ready   bool
	models  []probedModel
}

// A probedModel is one model of the worker.
type probedModel struct {
	info      engine.ModelInfo
	found     *foundModel // with the files on this machine; nil = they were not found
	unfound   error       // why
	compared  bool        // the worker's tokens of a test text are those of the files
	template  error       // how the worker's chat template is not that of the files
	tokenizes bool
	token     *engine.TokenID // generated
	took      time.Duration
}

func newProber(cfg *config.Probe) (*prober, error) {
	p := &prober{cfg: cfg}
	quiet := slog.New(slog.DiscardHandler) // what serve would log is in the report
	var key func() string
	if cfg.WorkerAPIKeyFile != "" {
		k, err := credentials.NewKey(credentials.File{Flag: "--worker-api-key-file", Path: cfg.WorkerAPIKeyFile}, quiet)
		if err != nil {
			return nil, err
		}
		key = k.Get
	}
	models, err := model.NewSet(model.Options{Paths: byName(cfg.ModelPaths)})
	if err != nil {
		return nil, err
	}
	p.attach = newAttacher(&config.Serve{}, models, quiet)
	if p.wire, err = newWire(cfg.Worker.URL); err != nil {
		return nil, err
	}
	p.link, err = transport.New(transport.Options{
		URL: p.wire.plain(), WorkerID: cfg.Worker.ID, APIKey: key,
		ConnectTimeout: probeConnectTimeout, DialContext: p.wire.dial,
	})
	return p, err
}

// probe asks everything, in the order in which serve would. Its error says why the
// worker cannot be used.
func (p *prober) probe(ctx context.Context) error {
	defer p.link.Close()
	var err error
	if p.client, p.info, err = identify(ctx, p.link, p.cfg.Worker.Kind); err != nil {
		p.loading = errors.Is(err, detect.ErrLoading)
		return err
	}
	if err := p.client.Health(ctx); err != nil {
		p.loading = engine.AsError(err).Kind == engine.Overloaded
		return fmt.Errorf("the worker says that it is not well: %w", err)
	}
	p.ready = true
	for i, m := range p.info.Models {
		if i == maxModelsPerWorker {
			break
		}
		p.models = append(p.models, probedModel{info: m})
		if err := p.probeModel(ctx, &p.models[i], i < maxProbedModels); err != nil {
			return err
		}
	}
	return nil
}

// probeModel compares tokenizers, if the model's files are on this machine, and
// generates a token.
func (p *prober) probeModel(ctx context.Context, m *probedModel, generate bool) error {
	found, err := p.attach.resolveOne(p.cfg.Worker.ID, p.client.Kind(), m.info, p.info.Models)
	switch {
	case err == nil:
		m.found = &found
	case len(p.cfg.ModelPaths) > 0:
		return err
	default:
		m.unfound = err
	}
	if !generate {
		return nil
	}
	prompt, tokenizes, err := p.client.Tokenize(ctx, m.info.ID, probePrompt)
	if err != nil {
		return err
	}
	m.tokenizes = tokenizes
	if m.found != nil {
		if m.found.base == "" {
			if err := checkTokenizer(ctx, p.client, p.cfg.Worker.ID, *m.found); err != nil {
				return err
			}
			m.compared = tokenizes
			m.template = compareTemplates(*m.found)
		}
		prompt = m.found.model.Tokenizer.Encode(probePrompt, false)
	}
	if len(prompt) == 0 {
		prompt = []engine.TokenID{0} // in every vocabulary, whatever it means there
	}
	return p.generate(ctx, m, prompt)
}

// generate asks for one token, through the client that serve would use.
func (p *prober) generate(ctx context.Context, m *probedModel, prompt []engine.TokenID) error {
	client := p.client
	vocabulary := m.info.VocabSize
	if m.found != nil {
		client = withModel(client, m.found.model)
		vocabulary = cmp.Or(vocabulary, m.found.model.VocabSize)
	}
	began := time.Now()
	var ids []engine.TokenID
	for delta, err := range client.Generate(ctx, &engine.Request{
		ID: "baton-probe", Model: m.info.ID, TokenIDs: prompt, VocabSize: vocabulary, ContextLength: m.info.ContextLength,
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 1},
	}) {
		if err != nil {
			return fmt.Errorf("model %q: one token was asked for: %w", m.info.ID, err)
		}
		ids = append(ids, delta.TokenIDs...)
	}
	m.took = time.Since(began)
	switch {
	case len(ids) != 1:
		return fmt.Errorf("model %q: one token was asked for, and %d came", m.info.ID, len(ids))
	case ids[0] < 0 || vocabulary > 0 && int(ids[0]) >= vocabulary:
		return fmt.Errorf("model %q: the token that came, %d, is not in the vocabulary of %d", m.info.ID, ids[0], vocabulary)
	}
	m.token = &ids[0]
	return nil
}

// report is what was found.
func (p *prober) report(failure error) *probeReport {
	r := &probeReport{URL: p.cfg.Worker.URL, Usable: failure == nil, Loading: p.loading, Ready: p.ready,
		Models: []modelReport{}, Parameters: []parameterReport{}}
	if failure != nil {
		r.Problem = p.wire.real(failure.Error())
	}
	seen := p.wire.exchanges()
	if len(seen) == 0 {
		seen = []exchange{{method: "GET", path: "/v1/models"}} // the first one, for which there was no connection
	}
	r.Requests = requestReports(seen, p.cfg.Worker.URL)
	if p.client == nil {
		return r
	}
	r.Kind, r.Version = p.client.Kind(), p.info.Version
	for _, m := range p.models {
		r.Models = append(r.Models, m.report(p.cfg.Worker.ID))
	}
	r.Parameters = parameterReports(p.client.Parameters())
	return r
}

func (m *probedModel) report(workerID string) modelReport {
	r := modelReport{
		ID: m.info.ID, Parent: m.info.Parent, Path: m.info.Path,
		ContextLength: m.info.ContextLength, VocabSize: m.info.VocabSize,
		Tokenizes: m.tokenizes, TokenizerCompared: m.compared, Token: m.token, TookMS: milliseconds(m.took),
	}
	if m.found != nil {
		r.Files = m.found.model.Path
	}
	if m.template != nil {
		r.TemplateProblem = m.template.Error()
	}
	if m.unfound != nil {
		r.FilesProblem = strings.TrimPrefix(m.unfound.Error(), fmt.Sprintf("model %q: ", m.info.ID))
	}
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
