module hudi-operator.dev/hack/pause
go 1.24
