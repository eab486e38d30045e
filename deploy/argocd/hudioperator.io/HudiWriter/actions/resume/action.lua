-- As `kubectl hudi resume`.
obj.spec.suspend = false
return obj
