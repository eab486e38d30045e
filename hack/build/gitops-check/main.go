// gitops-check FOLDER KUSTOMIZATION: what Argo CD, kstatus and Flux say of objects, as tests in Argo CD's layout.
//
// FOLDER/GROUP/KIND has health.lua with health_test.yaml, actions/discovery.lua and
// actions/NAME/action.lua with actions/action_test.yaml, as resource_customizations of Argo CD, and
// kstatus_test.yaml of the same form for kstatus, and for Flux with
// the healthCheckExprs of the Kustomization in the file KUSTOMIZATION. Scripts get what Argo CD gives to those of its
// ConfigMap: the object, Lua's base and table libraries, and one second. One line for each test;
// exit status 1 if one of them fails, or a script or an object has none.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	flux "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

type healthStatus struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type healthTests struct {
	Tests []struct {
		InputPath    string       `json:"inputPath"`
		HealthStatus healthStatus `json:"healthStatus"`
	} `json:"tests"`
}

type kstatusTests struct {
	Tests []struct {
		InputPath string `json:"inputPath"`
		Status    string `json:"status"`
		Flux      string `json:"flux"`
	} `json:"tests"`
}

type actionTests struct {
	DiscoveryTests []struct {
		InputPath string   `json:"inputPath"`
		Result    []object `json:"result"`
	} `json:"discoveryTests"`
	ActionTests []struct {
		Action             string `json:"action"`
		InputPath          string `json:"inputPath"`
		ExpectedOutputPath string `json:"expectedOutputPath"`
	} `json:"actionTests"`
}

// check counts tests, and collects what is tested.
type check struct {
	tests, failures int
	used            map[string]bool
	expressions     map[string]*cel.StatusEvaluator // by kind
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gitops-check FOLDER KUSTOMIZATION")
		os.Exit(2)
	}
	c := &check{used: map[string]bool{}, expressions: map[string]*cel.StatusEvaluator{}}
	if err := c.learn(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := c.all(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d tests, %d failures\n", c.tests, c.failures)
	if c.failures > 0 {
		os.Exit(1)
	}
}

func (c *check) all(root string) error {
	kinds, err := filepath.Glob(filepath.Join(root, "*", "*", "health.lua"))
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return fmt.Errorf("%s: no GROUP/KIND/health.lua", root)
	}
	for _, script := range kinds {
		folder := filepath.Dir(script)
		for _, part := range []func(string) error{c.health, c.kstatus, c.actions} {
			if err := part(folder); err != nil {
				return err
			}
		}
	}
	return c.rest(root)
}

// tell prints one test, and counts it.
func (c *check) tell(what, path string, got, want any) {
	c.tests++
	if reflect.DeepEqual(got, want) {
		fmt.Printf("ok %s %s\n", what, path)
		return
	}
	c.failures++
	fmt.Printf("FAILED %s %s:\n  got  %v\n  want %v\n", what, path, got, want)
}

func (c *check) health(folder string) error {
	var tests healthTests
	if err := c.read(filepath.Join(folder, "health_test.yaml"), &tests); err != nil {
		return err
	}
	script, err := c.script(filepath.Join(folder, "health.lua"))
	if err != nil {
		return err
	}
	for _, test := range tests.Tests {
		path := filepath.Join(folder, test.InputPath)
		obj, err := c.object(path)
		if err != nil {
			return err
		}
		c.tell("health", path, c.healthOf(script, obj), test.HealthStatus)
	}
	return nil
}

// healthOf runs a script; an error of the script is a health that no test expects.
func (c *check) healthOf(script string, obj object) healthStatus {
	found, err := runLua(script, obj)
	if err != nil {
		return healthStatus{"error", err.Error()}
	}
	fields, ok := found.(object)
	if !ok {
		return healthStatus{"error", fmt.Sprintf("no table: %v", found)}
	}
	state, _ := fields["status"].(string)
	message, _ := fields["message"].(string)
	switch state {
	case "Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown":
		return healthStatus{state, message}
	}
	return healthStatus{"error", fmt.Sprintf("no health of Argo CD: %v", fields)}
}

// learn reads the expressions by which Flux judges objects.
func (c *check) learn(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var found struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, one := range found.Spec.HealthCheckExprs {
		evaluator, err := cel.NewStatusEvaluator(&one.HealthCheckExpressions)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", path, one.Kind, err)
		}
		c.expressions[one.Kind] = evaluator
	}
	return nil
}

// evaluated is the status by expressions; with an error in one of them Flux calls it unknown, and waits.
func evaluated(evaluator *cel.StatusEvaluator, obj *unstructured.Unstructured) string {
	found, err := evaluator.Evaluate(context.Background(), obj)
	if err != nil {
		return flux.UnknownStatus.String()
	}
	return found.Status.String()
}

// kstatus asks both implementations: kubectl's and Flux's.
func (c *check) kstatus(folder string) error {
	var tests kstatusTests
	if err := c.read(filepath.Join(folder, "kstatus_test.yaml"), &tests); err != nil {
		return err
	}
	for _, test := range tests.Tests {
		path := filepath.Join(folder, test.InputPath)
		obj, err := c.object(path)
		if err != nil {
			return err
		}
		asked := &unstructured.Unstructured{Object: obj}
		upstream, err := status.Compute(asked)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.tell("kstatus", path, upstream.Status.String(), test.Status)
		fluxs, err := flux.Compute(asked)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.tell("flux", path, fluxs.Status.String(), test.Status)
		evaluator := c.expressions[filepath.Base(folder)]
		if evaluator == nil {
			return fmt.Errorf("the Kustomization has no healthCheckExprs for %s", filepath.Base(folder))
		}
		c.tell("healthCheckExprs", path, evaluated(evaluator, asked), test.Flux)
	}
	return nil
}

func (c *check) actions(folder string) error {
	folder = filepath.Join(folder, "actions")
	if _, err := os.Stat(folder); os.IsNotExist(err) {
		return nil
	}
	var tests actionTests
	if err := c.read(filepath.Join(folder, "action_test.yaml"), &tests); err != nil {
		return err
	}
	discovery, err := c.script(filepath.Join(folder, "discovery.lua"))
	if err != nil {
		return err
	}
	for _, test := range tests.DiscoveryTests {
		path := filepath.Join(folder, test.InputPath)
		obj, err := c.object(path)
		if err != nil {
			return err
		}
		found, err := runLua(discovery, obj)
		if err != nil {
			return fmt.Errorf("%s with %s: %w", "discovery.lua", path, err)
		}
		named, ok := found.(object)
		if !ok {
			return fmt.Errorf("discovery.lua with %s: no table of actions: %v", path, found)
		}
		c.tell("discovery", path, listed(named), test.Result)
	}
	for _, test := range tests.ActionTests {
		path := filepath.Join(folder, test.InputPath)
		obj, err := c.object(path)
		if err != nil {
			return err
		}
		want, err := c.object(filepath.Join(folder, test.ExpectedOutputPath))
		if err != nil {
			return err
		}
		script, err := c.script(filepath.Join(folder, test.Action, "action.lua"))
		if err != nil {
			return err
		}
		found, err := runLua(script, obj)
		if err != nil {
			return fmt.Errorf("%s with %s: %w", test.Action, path, err)
		}
		c.tell("action "+test.Action, path, plain(restored(found, obj)), plain(want))
	}
	return nil
}

// listed are actions as tests list them, by name.
func listed(named object) []object {
	var found []object
	for name, settings := range named {
		action := object{"name": name}
		if fields, ok := settings.(object); ok {
			for field, value := range fields {
				action[field] = value
			}
		}
		found = append(found, action)
	}
	sort.Slice(found, func(i, j int) bool { return found[i]["name"].(string) < found[j]["name"].(string) })
	return found
}

// restored gives empty objects back what they were: Lua has one empty table, which comes back as a list.
func restored(found, before any) any {
	switch value := found.(type) {
	case object:
		old, _ := before.(object)
		for name := range value {
			value[name] = restored(value[name], old[name])
		}
	case []any:
		if old, ok := before.(object); ok && len(value) == 0 && len(old) == 0 {
			return object{}
		}
		old, _ := before.([]any)
		for i := range value {
			if i < len(old) {
				value[i] = restored(value[i], old[i])
			}
		}
	}
	return found
}

// plain is an object in which every number is of one type, as Lua has it.
func plain(value any) any {
	switch value := value.(type) {
	case object:
		for name := range value {
			value[name] = plain(value[name])
		}
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
	case int64:
		return float64(value)
	}
	return value
}

func (c *check) script(path string) (string, error) {
	c.used[path] = true
	text, err := os.ReadFile(path)
	return string(text), err
}

func (c *check) read(path string, into any) error {
	c.used[path] = true
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// object reads an object as a client of Kubernetes has it: whole numbers are int64.
func (c *check) object(path string) (object, error) {
	c.used[path] = true
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var found object
	if err := json.Unmarshal(asJSON, &found); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// rest names scripts and objects that no test has used.
func (c *check) rest(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Dir(path) == filepath.Clean(root) {
			return err
		}
		if (strings.HasSuffix(path, ".lua") || strings.HasSuffix(path, ".yaml")) && !c.used[path] {
			c.failures++
			fmt.Printf("FAILED %s: no test uses it\n", path)
		}
		return nil
	})
}
