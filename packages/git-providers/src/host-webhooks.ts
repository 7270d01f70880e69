import type { ReceivedWebhook, SignedWebhook } from '@slipway/common/webhook-signature.js';
import type { HostActor, ToldChangeRequest } from './git-provider.js';

/** How the webhooks of a kind of git server are read. */
export interface HostWebhooks {
  /** Names the source in the addresses that hosts send to, and in triggers of automations. */
  source: string;
  /** The ones that clients offer to choose from; a trigger may name any. */
  eventTypes: readonly string[];
  /** The first that is sent tells repetitions. */
  idHeaders: readonly string[];
  isSigned: (sent: SignedWebhook) => boolean;
  /** Recognizes a test of the connection, which is not an event. */
  isTest?: (sent: ReceivedWebhook) => boolean;
  /** Returns the event's key, such as `issues.labeled`. */
  keyOf: (sent: ReceivedWebhook, payload: unknown) => string;
  /** Who has caused the event, which is not always the author of what it is about; null where the event names no account. */
  actorOf: (payload: unknown) => HostActor | null;
  /** Reads members as the host sends them; their types are not checked. */
  told: (
    payload: unknown,
  ) => Record<keyof ToldChangeRequest, unknown> & { numbers: unknown[]; shas: unknown[] };
}

/** A name's pattern, and what a body of such an event has: members, or more. Narrow ones stand before wide ones. */
export type EventShape = readonly [RegExp, ...(string | ((payload: unknown) => boolean))[]];

/** The name of an event, which its host does not sign; empty where the body, which it does, looks like another one. */
export function nameAsItLooks(shapes: readonly EventShape[], name: string, payload: unknown): string {
  const body: object = Object(payload);
  const looks = shapes.find(([, ...parts]) =>
    parts.every((part) => (typeof part === 'string' ? Object.hasOwn(body, part) : part(payload))),
  );
  return looks === shapes.find(([pattern]) => pattern.test(name)) ? name : '';
}
