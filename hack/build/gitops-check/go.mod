module hudi-operator.dev/hack/gitops-check

go 1.26.0

require (
	github.com/fluxcd/cli-utils v1.2.2
	github.com/fluxcd/pkg/apis/kustomize v1.15.0
	github.com/fluxcd/pkg/runtime v0.90.0
	github.com/yuin/gopher-lua v1.1.1
	k8s.io/apimachinery v0.37.1
	sigs.k8s.io/cli-utils v0.37.2
	sigs.k8s.io/yaml v1.6.0
)
