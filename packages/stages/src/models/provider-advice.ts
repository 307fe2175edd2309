// What a person can change after a failed model call: the variable, the address or the name that it is due to.
import { didYouMean } from "@sluice/core/runtime";
import type { ProviderAccess, ResolvedModel } from "./model.ts";
import { PRICE_TABLES } from "./pricing/price-table.ts";
import type { ModelFailure } from "./reply/reply.ts";

const LONGEST_ADVICE = 400;

/** The failure with what to do about it. A model without an address of its own, such as a script, has nothing to change. */
export function advised(failure: ModelFailure, { id, access }: Pick<ResolvedModel, "id" | "access">): ModelFailure {
  if (access === undefined || failure.kind === "aborted") return failure;
  const advice = adviceOn(failure, id, access);
  if (advice === undefined) return failure;
  return { ...failure, message: `${failure.message.replace(/[.;\s]+$/u, "")}; ${advice.slice(0, LONGEST_ADVICE)}` };
}

function adviceOn({ code, message }: ModelFailure, id: string, access: ProviderAccess): string | undefined {
  const { address, addressFrom } = access;
  switch (code) {
    case "unauthorized":
      return keyAdvice(access);
    case "forbidden":
      return `the account of ${keyName(access)} may not use ${id} at ${address}: check its rights, its region and ${addressFrom}`;
    case "payment_required":
    case "quota_exhausted":
      return `the account of ${keyName(access)} has no credit or quota left: add some, or set the key of another account`;
    case "not_found":
      return wrongPath(access) ?? modelAdvice(id, access);
    case "bad_request":
      return wrongPath(access);
    case "html_response":
      return `a proxy or a wrong address sends such pages: check ${addressFrom} and the proxy of this machine`;
    case "server_error":
    case "overloaded":
    case "network":
    case "timeout":
      return networkAdvice(message, access);
    default:
      return undefined;
  }
}

function keyName({ keyVariable }: ProviderAccess): string {
  return keyVariable ?? "this provider";
}

function keyAdvice({ keyVariable, hasKey, address, addressFrom }: ProviderAccess): string {
  if (keyVariable === undefined) return `${address} wants a key, and this provider has no variable for one`;
  if (!hasKey) return `${address} wants a key: set ${keyVariable}`;
  return `${address} does not accept the key in ${keyVariable}: set a valid one, or the address it belongs to (${addressFrom})`;
}

/** Addresses that were copied with the path of one request. */
const REQUEST_PATH = /\/(?:chat\/completions|completions|responses|messages|models(?:\/[^/]*)?)$/;

function wrongPath({ address, addressFrom }: ProviderAccess): string | undefined {
  const path = REQUEST_PATH.exec(address)?.[0];
  return path === undefined ? undefined : `${addressFrom} ends in ${path}, which is added to it: remove that`;
}

function modelAdvice(id: string, { provider, address, addressFrom }: ProviderAccess): string {
  const name = id.slice(id.indexOf("/") + 1);
  if (provider === "ollama") return `to load it: ollama pull ${name}`;
  const close = didYouMean(name, Object.keys(PRICE_TABLES[provider]?.models ?? {}));
  if (close !== undefined) return `did you mean ${id.slice(0, id.indexOf("/"))}/${close}?`;
  return `${address} has no model ${name}, or not for this key: check the name and ${addressFrom}; sluice doctor lists what is set`;
}

const TLS = /\b(?:ERR_(?:TLS|SSL)_\w+|CERT_\w+|UNABLE_TO_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+)|certificate/i;
const WITHOUT_ANSWER = /\bECONN(?:REFUSED|ABORTED)\b/;
const UNKNOWN_HOST = /\b(?:ENOTFOUND|EAI_AGAIN)\b/;
const UNREACHABLE = /\b(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)\b/;

function networkAdvice(message: string, { provider, address, addressFrom }: ProviderAccess): string | undefined {
  if (TLS.test(message))
    return `the certificate of ${address} is not trusted here: name the file of your CA in NODE_EXTRA_CA_CERTS, or check ${addressFrom}`;
  if (WITHOUT_ANSWER.test(message)) {
    return provider === "ollama"
      ? `no Ollama answers at ${address}: start it with ollama serve, or set ${addressFrom}`
      : `nothing listens at ${address}: start the server, or set ${addressFrom}`;
  }
  if (UNKNOWN_HOST.test(message))
    return `the host of ${address} is not known here: check the network and ${addressFrom}`;
  if (UNREACHABLE.test(message)) return `${address} cannot be reached: check the network, the proxy and ${addressFrom}`;
  return undefined;
}
