import { createHmac, randomUUID } from "node:crypto";

const env = process.env as Record<string, string>;

function serviceJWT(): string {
  const now = Math.floor(Date.now() / 1000);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = part({ alg: "HS256", typ: "JWT" }) + "." + part({ iss: env.HUB_SERVICE_CODE,
    sub: env.HUB_LINKED_USER, aud: "hub", iat: now, exp: now + 60, jti: randomUUID() });
  return signed + "." + createHmac("sha256", env.HUB_SERVICE_SECRET).update(signed).digest("base64url");
}

const response = await fetch(env.HUB_URL + "/v1/pay/orders?limit=1",
  { headers: { Authorization: "Bearer " + serviceJWT() } });
console.log(await response.text());
