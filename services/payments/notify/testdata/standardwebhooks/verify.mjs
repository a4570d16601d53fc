// Verifies each of what comes by standard input, [{"secret", "headers", "body"}], and says so in a line.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

for (const { secret, headers, body } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    new Webhook(secret).verify(body, headers);
    console.log("holds");
  } catch (e) {
    console.log("refused: " + e.message);
  }
}
