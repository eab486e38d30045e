package main

import "testing"

func TestTheOwnerOfATicketIsItsIncarnation(t *testing.T) {
	inc, nonce := "00f13d35-c142-4966-98ae-fe012fe85b39", "415be3f1-5107-4ace-823e-0ba3ff4f2a11"
	for name, want := range map[string]string{
		inc + "-" + nonce:       inc,
		"inc-1-" + nonce:        "inc-1",
		inc:                     "",
		inc + "-7":              "",
		nonce:                   "",
		inc + "-" + nonce + "-": "",
	} {
		if have := incOfTicket(name); have != want {
			t.Errorf("%q: %q, want %q", name, have, want)
		}
	}
}
