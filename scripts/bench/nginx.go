package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"text/template"

	"hub.internal/pkg/localserver"
)

const nginxName = "nginx"

// nginxConfig is what users of toolbox would put in front of it: one key, a limit by key far above the load, kept connections.
// No access log is written, which is to nginx's advantage: Hub keeps its audit log.
var nginxConfig = template.Must(template.New("nginx").Parse(`daemon off;
worker_processes auto;
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/log/nginx.log warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path {{.Dir}}/nginx-body;
  proxy_temp_path {{.Dir}}/nginx-proxy;
  fastcgi_temp_path {{.Dir}}/nginx-fastcgi;
  uwsgi_temp_path {{.Dir}}/nginx-uwsgi;
  scgi_temp_path {{.Dir}}/nginx-scgi;
  keepalive_requests 1000000000;
  map_hash_bucket_size 256;
  map $http_authorization $client {
    default "";
    "Bearer {{.Key}}" bench;
  }
  limit_req_zone $client zone=keys:10m rate=100000r/s;
  upstream toolbox { server {{.Toolbox}}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen {{.Addr}};
    location = /healthz { return 200; }
    location / {
      if ($client = "") { return 401; }
      limit_req zone=keys burst=10000 nodelay;
      proxy_pass http://toolbox;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffers 16 64k;
      proxy_buffer_size 64k;
      proxy_busy_buffers_size 128k;
    }
  }
}
`))

// startNginx starts nginx in front of the toolbox that runs. Its workers are its children, so that its memory is not shown.
func startNginx(ctx context.Context, s *stack, _ []*workload, _ func(string, ...any)) (target, error) {
	behind, ok := s.addr[toolboxName]
	if !ok {
		return target{}, errors.New("toolbox is not there")
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		return target{}, errors.New("it is not installed: the package nginx-light has it")
	}
	port, err := localserver.FreePort()
	if err != nil {
		return target{}, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	config, err := os.Create(s.path("nginx.conf"))
	if err != nil {
		return target{}, err
	}
	err = nginxConfig.Execute(config, map[string]string{"Dir": s.dir, "Key": s.key, "Toolbox": behind, "Addr": addr})
	if err := errors.Join(err, config.Close()); err != nil {
		return target{}, err
	}
	p, err := s.spawn(nginxName, localserver.Program{Path: program, Dir: s.dir, Args: []string{"-c", config.Name(), "-p", s.dir}})
	if err != nil {
		return target{}, err
	}
	s.services[nginxName], s.pids[nginxName] = p, p.PID()
	if err := awaitOK(ctx, p, "http://"+addr+"/healthz"); err != nil {
		return target{}, fmt.Errorf("%w; see %s", err, s.path("log", "nginx.log"))
	}
	header := http.Header{"Authorization": {"Bearer " + s.key}}
	return target{name: nginxName, processes: []string{toolboxName, nginxName, "mariadb"}, own: 1, read: readToolbox,
		open: func(w *workload) (session, error) { return openToolbox(addr, header, w) }}, nil
}
