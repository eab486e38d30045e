package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The contract's data, which operator, agent and Java module share.
func shared(t *testing.T) (words map[string][]string, kinds, ranges []string) {
	t.Helper()
	text, err := os.ReadFile("../operator/hudi_contract/protocol.json")
	var told struct {
		Words map[string][]string
		Keys  map[string]struct{ Range string }
	}
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		t.Fatal(err)
	}
	for kind, entry := range told.Keys {
		kinds, ranges = append(kinds, kind), append(ranges, entry.Range)
	}
	return told.Words, kinds, ranges
}

func TestWordsAreThoseOfTheContract(t *testing.T) {
	words, _, ranges := shared(t)
	for word, known := range map[string][]string{
		leaseOnly: words["FencingMode"], roleWriter: words["Role"], roleAgent: words["Role"], control: ranges, tables: ranges,
	} {
		if !slices.Contains(known, word) {
			t.Errorf("%q is none of %q", word, known)
		}
	}
}

// Names below `report/` and `done/` stand in the contract's code alone.
func TestNamesAreThoseOfTheContract(t *testing.T) {
	text, err := os.ReadFile("../operator/hudi_contract/keys.py")
	if said := fmt.Sprintf("\n_ABANDONED, _ATTEMPT = %q, %q\n", abandoned(""), reportOf("")); err != nil || !strings.Contains(string(text), said) {
		t.Errorf("keys.py does not say %s: %v", said, err)
	}
}

// A kind that the contract does not have, such as one that was renamed there, would be compared for nothing.
func TestKindsAreThoseOfTheContract(t *testing.T) {
	_, known, _ := shared(t)
	named := kindsIn(t)
	for _, kind := range named {
		if !slices.Contains(known, kind) {
			t.Errorf("%q is no kind of key: %q", kind, known)
		}
	}
	if len(named) < 20 {
		t.Errorf("found %q alone", named)
	}
}

// kindsIn is what the gateway compares the kind of a key with, and the kinds of keys that it reads.
func kindsIn(t *testing.T) (found []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	add := func(of ...ast.Expr) {
		for _, one := range of {
			if literal, ok := one.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && text != "" {
					kind, _, _ := strings.Cut(text, "/")
					found = append(found, kind)
				}
			}
		}
	}
	isKind := func(of ast.Expr) bool {
		name, ok := of.(*ast.Ident)
		return ok && name.Name == "kind"
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.BinaryExpr:
				if isKind(node.X) {
					add(node.Y)
				}
			case *ast.SwitchStmt:
				for _, one := range node.Body.List {
					if node.Tag != nil && isKind(node.Tag) {
						add(one.(*ast.CaseClause).List...)
					}
				}
			case *ast.CallExpr:
				if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "key" && len(node.Args) == 3 {
					path := node.Args[2]
					for sum, ok := path.(*ast.BinaryExpr); ok; sum, ok = path.(*ast.BinaryExpr) {
						path = sum.X
					}
					add(path)
				}
			}
			return true
		})
	}
	return found
}
