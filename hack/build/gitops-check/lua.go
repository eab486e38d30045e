package main

import (
	"context"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// runLua runs a script with an object in the global obj, and returns what the script returns. It may
// use what Argo CD lets scripts of its ConfigMap use, except os.time and os.date: no io, string or math.
func runLua(script string, obj object) (any, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		call := lua.P{Fn: state.NewFunction(library.open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(library.name)); err != nil {
			return nil, err
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limit)
	state.SetGlobal("obj", toLua(state, obj))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	return fromLua(state.Get(-1))
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		made := state.NewTable()
		for _, item := range value {
			made.Append(toLua(state, item))
		}
		return made
	case object:
		made := state.NewTable()
		for name, item := range value {
			made.RawSetString(name, toLua(state, item))
		}
		return made
	}
	return lua.LNil
}

// fromLua is a value as JSON has it; a table without entries is a list, as for Argo CD.
func fromLua(value lua.LValue) (any, error) {
	switch value := value.(type) {
	case lua.LBool:
		return bool(value), nil
	case lua.LString:
		return string(value), nil
	case lua.LNumber:
		return float64(value), nil
	case *lua.LTable:
		return tableFromLua(value)
	}
	if value == lua.LNil {
		return nil, nil
	}
	return nil, fmt.Errorf("a %s has no form in JSON", value.Type())
}

func tableFromLua(table *lua.LTable) (any, error) {
	fields, items := object{}, []any{}
	var problem error
	table.ForEach(func(key, inner lua.LValue) {
		item, err := fromLua(inner)
		switch key := key.(type) {
		case lua.LString:
			fields[string(key)] = item
		case lua.LNumber:
			if int(key) != len(items)+1 {
				err = fmt.Errorf("a list with gaps, at %v", key)
			}
			items = append(items, item)
		default:
			err = fmt.Errorf("a key that is a %s", key.Type())
		}
		if err != nil && problem == nil {
			problem = err
		}
	})
	if problem == nil && len(fields) > 0 && len(items) > 0 {
		problem = fmt.Errorf("a table that is a list and an object")
	}
	if problem != nil {
		return nil, problem
	}
	if len(fields) > 0 {
		return fields, nil
	}
	return items, nil
}
