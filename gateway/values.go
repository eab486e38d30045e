package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxDepth = 64 // of objects and arrays in a value
	// Characters of a number in a value. The longest that our writers put is a float64, of 24.
	maxNumber = 32
	// Elements of objects and arrays that a value may have, and one more for each so many bytes: where it is
	// parsed, one takes up to 50 times its bytes. The operator has the same bound (records.py).
	freeElements, elementBytes = 32, 12
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

// plain says whether every reader understands a value in the same way: JSON in UTF-8 without duplicate names
// in an object, with bounded depth, length of numbers and number of elements.
func plain(value []byte) error {
	if !utf8.Valid(value) || !json.Valid(value) {
		return errors.New("no JSON in UTF-8")
	}
	if most := freeElements + len(value)/elementBytes; elements(value) > most {
		return fmt.Errorf("more than %d elements", most)
	}
	if unpaired(value) {
		return errors.New("half of a surrogate pair")
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

// elements counts what valid JSON has of `[`, `{` and `,` outside of its texts.
func elements(value []byte) (n int) {
	inText := false
	for at := 0; at < len(value); at++ {
		switch c := value[at]; {
		case inText && c == '\\':
			at++
		case c == '"':
			inText = !inText
		case !inText && (c == '[' || c == '{' || c == ','):
			n++
		}
	}
	return n
}

// unpaired says whether valid JSON has an escape like \ud800 without its other half. Here it would be
// read as U+FFFD; to the operator it is a text that no key and no request can have.
func unpaired(value []byte) bool {
	unit := func(at int) rune {
		if at+6 > len(value) || value[at] != '\\' || value[at+1] != 'u' {
			return -1
		}
		code, err := strconv.ParseUint(string(value[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(code)
	}
	for at := 0; at < len(value); at++ {
		if value[at] != '\\' {
			continue
		}
		switch first := unit(at); {
		case !utf16.IsSurrogate(first):
			at++ // whatever is escaped, a backslash too
		case utf16.DecodeRune(first, unit(at+6)) == utf8.RuneError:
			return true
		default:
			at += 11
		}
	}
	return false
}

func (r registration) of(s subject) bool {
	return r.PodUID == s.uid && r.Attempt == s.attempt() && r.Namespace == s.namespace && r.Pod == s.pod
}
