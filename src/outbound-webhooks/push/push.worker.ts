import { Injectable, Logger } from '@nestjs/common';
import { ADMIN_EMAIL, UserRepository } from '../../auth/user.repository.js';
import { retryAfter } from '@slipway/common/http/response-body.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { ServiceAddress } from '../../config/service-address.js';
import type { LeaseEnd } from '@slipway/database/leased-rows.js';
import { LeasedWork, type LeasedWorkOptions } from '@slipway/database/leased-worker.js';
import { ServiceLeasedWorker } from '../../database/leased-work.module.js';
import { ATTEMPT_TIMEOUT_MS, nextAttempt, WebhookHttpClient } from '../webhook.sender.js';
import { PushKeys } from './push-keys.js';
import { type LeasedMessage, PushMessageRepository } from './push-message.repository.js';
import { PushSubscriptionRepository } from './push-subscription.repository.js';

/** Longer than an attempt can take. */
const LEASE_MS = 2 * ATTEMPT_TIMEOUT_MS;
/** What has not arrived by then is no news. */
const KEPT_SECONDS = 4 * 3_600;
const GONE: readonly number[] = [404, 410];
/** Refusals that may pass, besides those of the server itself. */
const BUSY: readonly number[] = [408, 425, 429];

const OPTIONS: LeasedWorkOptions = {
  queue: 'push',
  places: 16,
  reserved: 4,
  share: 8,
  slowAfterMs: 1_000,
  leaseMs: LEASE_MS,
  pollMs: 5_000,
  mostAttempts: 11,
  pauseMs: LEASE_MS,
};

/** Sends notifications to the push services of browsers, encrypted for each (RFC 8291), by the client of webhooks. */
@Injectable()
export class PushWorker extends ServiceLeasedWorker<LeasedMessage> {
  constructor(
    private readonly messages: PushMessageRepository,
    private readonly subscriptions: PushSubscriptionRepository,
    private readonly users: UserRepository,
    private readonly keys: PushKeys,
    private readonly http: WebhookHttpClient,
    private readonly address: ServiceAddress,
    shared: LeasedWork,
  ) {
    super(OPTIONS, shared, messages.leases, new Logger(PushWorker.name));
    shared.count(OPTIONS.queue, () => messages.leases.backlog());
  }

  protected async work(message: LeasedMessage, signal: AbortSignal): Promise<LeaseEnd | 'ended'> {
    const { subscriptionId: id, userId, attempts, createdAt } = message;
    if (!(await this.users.acting([userId])).has(userId)) {
      return (await this.messages.remove(message)) ? 'ended' : { dueAt: null };
    }
    const answer = await this.send(message, signal);
    if (GONE.includes(answer.status)) {
      await this.subscriptions.drop({ id, userId }, 'service');
      return 'ended';
    }
    const now = new Date(this.shared.clock.now());
    const { status, wait } = answer;
    const mayPass = status === 0 || status >= 500 || BUSY.includes(status);
    const dueAt = mayPass ? nextAttempt(attempts, now, { wait }) : null;
    if (dueAt !== null && dueAt.getTime() < createdAt.getTime() + KEPT_SECONDS * 1000) {
      return { dueAt };
    }
    if (status < 200 || status > 299) {
      this.logger.warn('failed to send notification', { subscription_id: id, status });
    }
    return (await this.messages.remove(message)) ? 'ended' : { dueAt: null };
  }

  protected override async giveUp(message: LeasedMessage): Promise<void> {
    await this.messages.remove(message);
  }

  /** Status 0: no answer. @throws the signal's reason */
  private async send(
    { subscriptionId: id, subscription, message, userId }: LeasedMessage,
    signal: AbortSignal,
  ): Promise<{ status: number; wait: number }> {
    const { kind, title, body, path, topic } = message;
    const { publicUrl } = this.address;
    const { default: webPush } = await import('web-push');
    const request = webPush.generateRequestDetails(
      this.subscriptions.browserOf({ id, subscription }),
      JSON.stringify({ kind, title, body, url: `${publicUrl}${path}`, tag: topic }),
      {
        vapidDetails: { subject: subjectOf(publicUrl), ...(await this.keys.pair()) },
        TTL: KEPT_SECONDS,
        urgency: kind === 'waiting' ? 'high' : 'normal',
        topic,
      },
    );
    try {
      const response = await this.http.fetch(request.endpoint, {
        method: 'POST',
        headers: request.headers,
        body: request.body,
        holder: userId,
        statusOnly: true,
        signal,
      });
      return { status: response.status, wait: retryAfter(response.headers, this.shared.clock.now()) ?? 0 };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UpstreamError)) {
        throw error;
      }
      return { status: 0, wait: 0 };
    }
  }
}

/** Whom a push service may ask: it takes an https address, or one of mail. */
function subjectOf(publicUrl: string): string {
  return publicUrl.startsWith('https:') ? publicUrl : `mailto:${ADMIN_EMAIL}`;
}
