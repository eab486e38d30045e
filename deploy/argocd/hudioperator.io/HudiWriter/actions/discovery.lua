-- Actions on a HudiWriter. Fields that Git sets are set back by selfHeal.
local suspended = obj.spec.suspend == true
local over = false
for _, condition in ipairs(obj.status ~= nil and obj.status.conditions or {}) do
  if condition.type == "Finished" and condition.status == "True" then
    over = true
  end
end
return {
  suspend = { displayName = "Suspend: stop its attempt", iconClass = "fa fa-fw fa-pause", disabled = suspended },
  resume = { displayName = "Resume", iconClass = "fa fa-fw fa-play", disabled = not suspended },
  restart = { displayName = "Run once more", iconClass = "fa fa-fw fa-rotate-right", disabled = suspended or not over },
}
