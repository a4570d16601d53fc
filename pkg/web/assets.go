package web

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"hub.internal/pkg/web/i18n"
)

//go:embed assets
var ownAssets embed.FS

// contentTypes are those that are served; the system's table differs from machine to machine.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".png": "image/png", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json",
	".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

// assets are files under an address that changes with their content, so that a browser may
// keep them for ever.
type assets struct {
	prefix string
	byName map[string]*asset
}

type asset struct {
	*Static
	hash string
}

func assetPrefix(service string) string { return "/assets/" + service + "/" }

// loadAssets reads the layout's own and those of a service, from the folder assets of each.
func loadAssets(service string, more fs.FS) (*assets, error) {
	a := &assets{prefix: assetPrefix(service), byName: map[string]*asset{}}
	for _, files := range []fs.FS{ownAssets, more} {
		if files == nil {
			continue
		}
		if _, err := fs.Stat(files, "assets"); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files, err := fs.Sub(files, "assets")
		if err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			body, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			kind := contentTypes[path.Ext(name)]
			if kind == "" {
				kind = mime.TypeByExtension(path.Ext(name))
			}
			if kind == "" {
				return fmt.Errorf("asset %s: unknown type", name)
			}
			static := NewStatic(kind, body)
			a.byName[name] = &asset{Static: static, hash: strings.Trim(static.etag, `"`)}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
	}
	return a, nil
}

// url is where an asset is: /assets/SERVICE/HASH/NAME.
func (a *assets) url(name string) (string, error) {
	file, ok := a.byName[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return a.prefix + file.hash + "/" + name, nil
}

// icons are the assets that browsers ask for at an address of their own, whatever a page names.
var icons = map[string]string{"/favicon.ico": "favicon.ico", "/apple-touch-icon.png": "apple-touch-icon.png",
	"/apple-touch-icon-precomposed.png": "apple-touch-icon.png"}

// Icon answers the icon that browsers ask for at a path; nil where that is none. It may be kept for a day.
func (s *Site) Icon(path string) http.Handler {
	name, known := icons[path]
	if !known {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=86400")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		s.assets.byName[name].ServeHTTP(w, r)
	})
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, a.prefix), "/")
	file, ok := a.byName[name]
	h := w.Header()
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !ok {
		h.Set("Cache-Control", "no-store")
		http.Error(w, "There is no such asset.", http.StatusNotFound)
		return
	}
	// While two releases run side by side a page may ask for the other's file: a near one
	// serves better than none, but must not be kept under that address.
	if hash == file.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-store")
	}
	file.Static.ServeHTTP(w, r)
}

// messages returns the translations of what the site's scripts say, which the page hands to them; nil in English.
func (s *Site) messages(c *i18n.Catalogue) func() map[string]string {
	if c == nil {
		return func() map[string]string { return nil }
	}
	found := map[string]string{}
	for name, file := range s.assets.byName {
		if path.Ext(name) == ".js" {
			for _, m := range i18n.InScript(file.body) {
				found[m] = c.Text(m)
			}
		}
	}
	return func() map[string]string { return found }
}
