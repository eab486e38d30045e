package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Roles as `admit/<attempt>` names them.
const (
	roleWriter = "writer"
	roleAgent  = "agent"
)

const (
	control = "control"
	tables  = "tables"
	agents  = "agents"
)

var (
	tableID = regexp.MustCompile(`^[0-9a-f]{32}$`)
	// Names in keys: incarnations, tickets, instants, attempts, answers.
	keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)?$`)
)

// contract says which role writes which kind of key. It is read from protocol.json, the file that
// operator, agent and Java module share.
type contract struct {
	prefix string
	// Kind of key to the roles that write it; `report` is narrowed further in rules.go.
	writers map[string]map[string]bool
	single  map[string]bool
	// Kind of key to the names that it may have; one that ends in `-` or `/` begins many. Without any: each name.
	names map[string][]string
	// Kind of key to its longest value; "" is every other key.
	longest map[string]int
	// Outcomes of an instant in a settle record; states of a recorded one.
	outcomes, states []string
}

// longestAt is the longest value of a key.
func (c *contract) longestAt(key []byte) int {
	_, kind, _ := c.kind(key)
	return c.longest[kind]
}

func readContract(file, prefix string) (*contract, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var data struct {
		Longest int `json:"maxValueBytes"`
		Keys    map[string]struct {
			Range   string `json:"range"`
			Path    string `json:"path"`
			Writer  string `json:"writer"`
			Longest int    `json:"maxValueBytes"`
			Names   []string
		} `json:"keys"`
		Words struct {
			Outcomes []string `json:"Outcome"`
			States   []string `json:"InstantState"`
		} `json:"words"`
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data.Keys) == 0 || data.Longest == 0 || len(data.Words.Outcomes) == 0 || len(data.Words.States) == 0 {
		return nil, fmt.Errorf("%s: no keys, no maxValueBytes, or no words for outcomes and states", file)
	}
	made := &contract{
		prefix: strings.TrimRight(prefix, "/") + "/", writers: map[string]map[string]bool{},
		single: map[string]bool{}, names: map[string][]string{}, longest: map[string]int{"": data.Longest}, outcomes: data.Words.Outcomes, states: data.Words.States,
	}
	for kind, entry := range data.Keys {
		made.single[kind] = !strings.Contains(entry.Path, "<")
		made.longest[kind] = max(data.Longest, entry.Longest)
		made.names[kind] = entry.Names
		roles := map[string]bool{}
		if entry.Range == tables {
			for _, writer := range strings.Split(entry.Writer, "+") {
				switch writer {
				case "jvm":
					roles[roleWriter], roles[roleAgent] = true, true
				case roleAgent:
					roles[roleAgent] = true
				case "operator":
				default:
					return nil, fmt.Errorf("%s: key %s: unknown writer %q", file, kind, writer)
				}
			}
		}
		made.writers[kind] = roles
	}
	return made, nil
}

// base returns the range of one table with the key, and the table's id: `P/tables/T/` or
// `P/control/T/`. Empty when the key is in neither.
func (c *contract) base(key []byte) (base, table string) {
	rest, ok := strings.CutPrefix(string(key), c.prefix)
	if !ok {
		return "", ""
	}
	part, rest, _ := strings.Cut(rest, "/")
	table, _, ok = strings.Cut(rest, "/")
	if !ok || (part != control && part != tables) || !tableID.MatchString(table) {
		return "", ""
	}
	return c.prefix + part + "/" + table + "/", table
}

// named says whether a key of this kind may have this name.
func (c *contract) named(kind, name string) bool {
	names := c.names[kind]
	return len(names) == 0 || slices.ContainsFunc(names, func(one string) bool {
		return name == one || (strings.HasSuffix(one, "-") || strings.HasSuffix(one, "/")) && strings.HasPrefix(name, one)
	})
}

// kind returns the kind and the name of a key of `P/tables/T/`; empty when it is no such key.
func (c *contract) kind(key []byte) (table, kind, name string) {
	base, table := c.base(key)
	rest, ok := strings.CutPrefix(string(key), c.prefix+tables+"/"+table+"/")
	if base == "" || !ok {
		return "", "", ""
	}
	kind, name, found := strings.Cut(rest, "/")
	single, known := c.single[kind]
	if !known || single == found || (!single && !keyName.MatchString(name)) {
		return "", "", ""
	}
	return table, kind, name
}

func (c *contract) key(part, table, path string) []byte {
	return []byte(c.prefix + part + "/" + table + "/" + path)
}

// prefixEnd is the first key after all keys with the prefix, which ends in `/`.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

// within says whether all keys from key to end (empty: one key) have the prefix.
func within(prefix string, key, end []byte) bool {
	return bytes.HasPrefix(key, []byte(prefix)) &&
		(len(end) == 0 || (bytes.Compare(end, key) > 0 && bytes.Compare(end, prefixEnd(prefix)) <= 0))
}
