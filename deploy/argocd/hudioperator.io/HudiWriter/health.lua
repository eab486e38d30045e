-- The health of a HudiWriter, from its conditions (docs/operate/conditions.md).
local function health(status, message)
  return { status = status, message = message }
end

-- Conditions of a writer that runs: they are told beside the health.
local told = {
  StartRefused = "True",
  ExecutorsMissing = "True",
  Late = "True",
}

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "the writer is being deleted")
end
if obj.status == nil or obj.status.conditions == nil then
  return health("Progressing", "the operator has not looked at the writer yet")
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "the operator has not seen the last change yet")
end

local found, beside = {}, {}
for _, condition in ipairs(obj.status.conditions) do
  found[condition.type] = condition
  if told[condition.type] == condition.status then
    table.insert(beside, condition.type .. ": " .. condition.reason .. ": " .. (condition.message or ""))
  end
end

local function is(kind, status)
  return found[kind] ~= nil and found[kind].status == status
end

-- The state of the writer, and the message of a condition.
local function say(kind)
  local text = obj.status.state or found[kind].reason
  if found[kind].message ~= nil and found[kind].message ~= "" then
    text = text .. ": " .. found[kind].message
  end
  return table.concat({ text, unpack(beside) }, "; ")
end

if is("Stalled", "True") then
  return health("Degraded", say("Stalled"))
end
if is("Suspended", "True") then
  return health("Suspended", "no attempt starts")
end
if is("Ready", "True") then
  return health("Healthy", say("Ready"))
end
if found.Ready == nil then
  return health("Progressing", "the operator has not said what the writer does")
end
return health("Progressing", say("Ready"))
