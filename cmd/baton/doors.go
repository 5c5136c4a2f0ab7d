package main

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"

	"baton/config"
	"baton/credentials"
)

// doors are what clients must show at the API's port, and what workers are shown.
type doors struct {
	tls       *tls.Config           // of the API's port; nil = it speaks plain HTTP
	knowsKey  func(key string) bool // a client's; nil = none is needed
	workerKey func() string         // nil = workers get none
}

// openDoors reads the files that the flags name. Its errors are sentences that
// name the flags.
func openDoors(cfg *config.Serve, log *slog.Logger) (*doors, error) {
	d := &doors{}
	var err error
	if d.tls, err = apiTLS(cfg, log); err != nil {
		return nil, err
	}
	if cfg.APIKeyFile != "" {
		keys, err := credentials.NewKeys(credentials.File{Flag: "--api-key-file", Path: cfg.APIKeyFile}, log)
		if err != nil {
			return nil, err
		}
		d.knowsKey = keys.Has
	}
	if cfg.WorkerAPIKeyFile != "" {
		key, err := credentials.NewKey(credentials.File{Flag: "--worker-api-key-file", Path: cfg.WorkerAPIKeyFile}, log)
		if err != nil {
			return nil, err
		}
		d.workerKey = key.Get
	}
	return d, nil
}

func apiTLS(cfg *config.Serve, log *slog.Logger) (*tls.Config, error) {
	certificate := credentials.File{Flag: "--tls-cert-path", Path: cfg.TLSCertPath}
	key := credentials.File{Flag: "--tls-key-path", Path: cfg.TLSKeyPath}
	clientCAs := credentials.File{Flag: "--tls-client-ca-cert-path", Path: cfg.TLSClientCAPath}
	switch {
	case certificate.Path == "" && key.Path == "" && clientCAs.Path != "":
		return nil, errors.New("--tls-client-ca-cert-path needs --tls-cert-path and --tls-key-path: clients show their certificates over TLS only")
	case certificate.Path == "" && key.Path != "":
		return nil, errors.New("--tls-key-path needs --tls-cert-path, the certificate of that key")
	case certificate.Path != "" && key.Path == "":
		return nil, errors.New("--tls-cert-path needs --tls-key-path, the private key of that certificate")
	case certificate.Path == "":
		return nil, nil
	}
	return credentials.ServerTLS(certificate, key, clientCAs, log)
}

// behind returns l, such that its connections speak TLS if they are to.
func (d *doors) behind(l net.Listener) net.Listener {
	if d.tls == nil {
		return l
	}
	return tls.NewListener(l, d.tls)
}

// sayDoors is the part of the log's start that an auditor looks for.
func sayDoors(cfg *config.Serve, log *slog.Logger) {
	log.Info("doors", "tls", cfg.TLSCertPath != "", "client_certificates", cfg.TLSClientCAPath != "",
		"client_keys", cfg.APIKeyFile != "", "worker_key", cfg.WorkerAPIKeyFile != "", "cors_origins", cfg.CORSOrigins)
}

// origins are the settings as the server package takes them.
func origins(cfg *config.Serve) []string {
	var list []string
	for _, o := range cfg.CORSOrigins {
		list = append(list, o.String())
	}
	return list
}
