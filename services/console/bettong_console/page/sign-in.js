// Where to go after signing in, and whether a token was refused: both are in the address.
const asked = new URLSearchParams(location.search);
document.getElementById("then").value = asked.get("then") || "/";
document.getElementById("refused").hidden = !asked.has("refused");
