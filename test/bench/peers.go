package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed peers/install.sh
var installScript string

// A peer is another gateway. In its command, beyond what a command replaces,
// {worker} is the worker's URL, {workeraddress} its host and port, {dir} the
// peer's folder, and {files} how many files a process may have open.
type peer struct {
	contestant
	installed string // what counts for its size, below {dir}
}

// peers are in the order of the table. All are asked for text: none of them owns
// the tokens, and none could carry an answer on. Where a setting is not the
// default, it is there because the default would lose the race by itself.
var peers = []peer{
	{installed: "root/usr/sbin/nginx", contestant: contestant{command: command{
		name:  "nginx",
		args:  []string{"{dir}/root/usr/sbin/nginx", "-p", "{scratch}", "-e", "{scratch}/error.log", "-c", "{scratch}/nginx.conf", "-g", "daemon off;"},
		files: map[string]string{"nginx.conf": nginxConfig},
	}}},
	{installed: "root/usr/sbin/haproxy", contestant: contestant{command: command{
		name:  "haproxy",
		args:  []string{"{dir}/root/usr/sbin/haproxy", "-db", "-f", "{scratch}/haproxy.cfg"},
		env:   []string{"LD_LIBRARY_PATH={dir}/root/usr/lib/x86_64-linux-gnu:{dir}/root/usr/lib/aarch64-linux-gnu"},
		files: map[string]string{"haproxy.cfg": haproxyConfig},
	}}},
	{installed: "venv/lib/*/site-packages/smg*", contestant: contestant{command: command{
		name: "smg",
		// Its own bound on requests depends on the cores, and is below 10,000 on small machines.
		args: append([]string{"{dir}/venv/bin/smg", "launch", "--max-concurrent-requests", "0"}, routerFlags...),
	}}},
	{installed: "venv/lib/*/site-packages/vllm_router*", contestant: contestant{command: command{
		name: "vllm-router",
		args: append([]string{"{dir}/venv/bin/vllm-router"}, routerFlags...),
	}}},
	{installed: "venv/lib/*/site-packages/sglang_router*", contestant: contestant{command: command{
		name: "sglang-router",
		args: append([]string{"{dir}/venv/bin/python", "-m", "sglang_router.launch_router"}, routerFlags...),
	}}},
	{installed: "venv/lib/*/site-packages", contestant: contestant{share: .1, mostOpen: 100, command: command{
		name: "litellm",
		args: []string{"{dir}/venv/bin/litellm", "--host", "127.0.0.1", "--port", "{port}", "--config", "{scratch}/config.yaml"},
		env: []string{"LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOG=ERROR", "OPENAI_API_KEY=none",
			"LITELLM_MASTER_KEY=" + litellmKey, "HOME={scratch}"},
		files:  map[string]string{"config.yaml": litellmConfig},
		header: "Authorization: Bearer " + litellmKey + "\r\n",
	}}},
}

// routerFlags are of the three routers, which have a common ancestor.
var routerFlags = []string{"--host", "127.0.0.1", "--port", "{port}", "--worker-urls", "{worker}", "--policy", "round_robin",
	"--prometheus-host", "127.0.0.1", "--prometheus-port", "{port2}"}

// The user is only looked at where root runs it.
const nginxConfig = `user root;
worker_processes auto;
worker_rlimit_nofile {files};
pid {scratch}/nginx.pid;
events { worker_connections {files}; }
http {
  access_log {scratch}/access.log;
  client_body_temp_path {scratch}/body;
  proxy_temp_path {scratch}/proxy;
  fastcgi_temp_path {scratch}/fastcgi;
  uwsgi_temp_path {scratch}/uwsgi;
  scgi_temp_path {scratch}/scgi;
  keepalive_requests 1000000;
  upstream worker { server {workeraddress}; keepalive 4096; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:{port} backlog=4096;
    location / {
      proxy_pass http://worker;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`

// HAProxy reserves files for two connections of each client from the start.
const haproxyConfig = `global
  maxconn {halffiles}
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 600s
  timeout server 600s
frontend all
  bind 127.0.0.1:{port}
  default_backend workers
backend workers
  server worker {workeraddress}
`

const litellmKey = "sk-bench-0123456789abcdef0123456789abcdef"

const litellmConfig = `model_list:
  - model_name: ` + modelName + `
    litellm_params:
      model: hosted_vllm/` + modelName + `
      api_base: {worker}/v1
      api_key: none
litellm_settings:
  telemetry: false
`

// installTimeout bounds the installation of all peers.
const installTimeout = 8 * time.Minute

// install runs the script that installs the named peers, or all, and returns
// those that are there then. What is not, the script has said to report.
func (c *course) install(ctx context.Context, names []string, report io.Writer) ([]contestant, error) {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cache := os.Getenv("BATON_PEERS")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		cache = filepath.Join(user, "baton", "peers")
	}
	if len(names) == 0 {
		for _, p := range peers {
			names = append(names, p.name)
		}
	}
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", installScript, "install.sh"}, names...)...)
	cmd.Env = append(os.Environ(), "BATON_PEERS="+cache)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = report, &said
	ownGroup(cmd)
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(report, "peers that were not installed yet are left out: %v %s\n", err, lastLine(said.Bytes()))
	}
	var there []contestant
	for _, p := range peers {
		dir := filepath.Join(cache, p.name)
		version, err := os.ReadFile(filepath.Join(dir, "version"))
		if err != nil || !slices.Contains(names, p.name) {
			continue
		}
		there = append(there, c.placed(p, dir, strings.TrimSpace(string(version))))
	}
	return there, ctx.Err()
}

// placed is a peer as it is installed in dir.
func (c *course) placed(p peer, dir, version string) contestant {
	files := max(c.files, 1024)
	places := strings.NewReplacer("{worker}", "http://"+c.worker.address, "{workeraddress}", c.worker.address, "{dir}", dir,
		"{files}", fmt.Sprint(files), "{halffiles}", fmt.Sprint(files/2-100))
	who := p.contestant
	who.text = true
	who.name = p.name + " " + version
	who.args, who.env, who.files = nil, nil, map[string]string{}
	for _, arg := range p.args {
		who.args = append(who.args, places.Replace(arg))
	}
	for _, e := range p.env {
		who.env = append(who.env, places.Replace(e))
	}
	for name, text := range p.files {
		who.files[name] = places.Replace(text)
	}
	parts, _ := filepath.Glob(filepath.Join(dir, p.installed))
	for _, part := range parts {
		who.size += sizeOf(part)
	}
	return who
}

func lastLine(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}
