package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// probeTimeout is longer than any probe of the chart waits: one that the kubelet has given up does not stay.
const probeTimeout = 15 * time.Second

// probe asks an HTTP server how it is: nil when it answers with 200. The kubelet runs it in etcd's container,
// because etcd tells its health without TLS, and so on the pod's loopback alone, which an httpGet of the kubelet
// does not reach.
func probe(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("usage: etcd-probe URL")
	}
	client := http.Client{
		Timeout:       probeTimeout,
		Transport:     &http.Transport{}, // no proxy of the environment
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Get(arguments[0])
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(text)))
}
