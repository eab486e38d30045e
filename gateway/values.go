package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	maxDepth = 64 // of objects and arrays in a value
	// Characters of a number in a value. The longest that our writers put is a float64, of 24.
	maxNumber = 32
)

// registration is the part of `writer/<inc>` that names the pod.
type registration struct {
	Inc, Attempt, Role, Pod, Namespace, PodUID, Node string
}

// registrationIn reads the fields by their exact names, as operator and agents do. encoding/json would
// take `PODUID` for `podUID`: a value that says one thing here and another thing to them.
func registrationIn(value []byte) (told registration, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return told, err
	}
	for name, into := range map[string]*string{
		"inc": &told.Inc, "attempt": &told.Attempt, "role": &told.Role,
		"pod": &told.Pod, "namespace": &told.Namespace, "podUID": &told.PodUID, "node": &told.Node,
	} {
		if field, ok := fields[name]; ok {
			if err := json.Unmarshal(field, into); err != nil {
				return told, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return told, nil
}

// plain says whether every reader understands a value in the same way: JSON in UTF-8, no name twice in
// one object, not so deep and no number so long that a reader gives up.
func plain(value []byte) error {
	if !utf8.Valid(value) || !json.Valid(value) {
		return errors.New("no JSON in UTF-8")
	}
	reader := json.NewDecoder(bytes.NewReader(value))
	reader.UseNumber()          // a number may be larger than a float64, which is its reader's business
	var names []map[string]bool // of the objects around; nil for an array
	isName := false
	for {
		token, err := reader.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if number, ok := token.(json.Number); ok && len(number) > maxNumber {
			return fmt.Errorf("a number of more than %d characters", maxNumber)
		}
		inObject := len(names) > 0 && names[len(names)-1] != nil
		switch text, isText := token.(string); {
		case token == json.Delim('{'):
			names, isName = append(names, map[string]bool{}), true
		case token == json.Delim('['):
			names, isName = append(names, nil), false
		case token == json.Delim('}') || token == json.Delim(']'):
			names = names[:len(names)-1]
			isName = len(names) > 0 && names[len(names)-1] != nil
		case inObject && isName && isText:
			if names[len(names)-1][text] {
				return fmt.Errorf("the name %q occurs twice in an object", text)
			}
			names[len(names)-1][text], isName = true, false
		default:
			isName = inObject
		}
		if len(names) > maxDepth {
			return fmt.Errorf("deeper than %d", maxDepth)
		}
	}
}

func (r registration) of(s subject) bool {
	return r.PodUID == s.uid && r.Attempt == s.attempt() && r.Namespace == s.namespace && r.Pod == s.pod
}
