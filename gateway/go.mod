module hudi-operator.dev/gateway

go 1.26.0

require (
	// Verifies tokens and reads key sets (JOSE): nothing of that is written here.
	github.com/go-jose/go-jose/v4 v4.1.4
	go.etcd.io/etcd/api/v3 v3.6.16
	golang.org/x/time v0.14.0
	google.golang.org/grpc v1.83.2
)

// For tests: HTTP/2 frame by frame.
require golang.org/x/net v0.61.0

require (
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.29.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
