package tool

// Manifest is what a service tells the gateway: the tools that it owns.
type Manifest struct {
	Service string `json:"service"`
	Tools   []Spec `json:"tools"`
}

// ManifestOf lists the tools of a service in the order of their declaration.
func ManifestOf(service string, tools []Tool) Manifest {
	m := Manifest{Service: service, Tools: make([]Spec, len(tools))}
	for i, t := range tools {
		m.Tools[i] = t.Spec
	}
	return m
}

// Catalog is deploy/catalog.json: the manifests that a gateway boots from before it
// has heard of any service. It is derived from the services and committed.
type Catalog struct {
	Manifests []Manifest `json:"manifests"`
}
