import { createHmac, timingSafeEqual } from "node:crypto";

/** Throws unless the bytes of body are from Hub, and of the last five minutes. */
export function verify(secret: string, headers: Record<string, string>, body: Buffer): void {
  const id = headers["webhook-id"], timestamp = headers["webhook-timestamp"];
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64"));
  const sent = headers["webhook-signature"].split(" ").map((s) => Buffer.from(s));
  if (!sent.some((s) => s.length === want.length && timingSafeEqual(s, want))) throw new Error("not from Hub");
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) throw new Error("too old");
}
