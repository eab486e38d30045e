-- Actions on a HudiTable. Those of a table in Git that sets spec.suspend are undone by selfHeal.
local suspended = obj.spec.suspend == true
return {
  suspend = { displayName = "Suspend: stop its writers", iconClass = "fa fa-fw fa-pause", disabled = suspended },
  resume = { displayName = "Resume", iconClass = "fa fa-fw fa-play", disabled = not suspended },
}
