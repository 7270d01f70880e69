import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { RepeatedWork } from '../common/async.js';
import { Clock } from '../common/clock.js';
import { errorMessage } from '../common/errors/error-message.js';
import { DatabaseNotifications } from '../database/notifications/database-notifications.js';
import {
  type ClaimedDelivery,
  DELIVERIES_CHANNEL,
  WebhookDeliveryRepository,
} from './webhook-delivery.repository.js';
import type { WebhookDelivery } from './webhook-delivery.entity.js';
import type { WebhookEndpoint } from './webhook-endpoint.entity.js';
import { WebhookEndpointRepository } from './webhook-endpoint.repository.js';
import { TEST_EVENT } from './webhook-event.js';
import { WebhookMetrics } from './webhook.metrics.js';
import { ATTEMPT_TIMEOUT_MS, OutboundWebhookSender } from './webhook.sender.js';

/** For attempts that fall due, and for notifications that were lost. */
const POLL_MS = 2_000;
const PRUNE_MS = 3_600_000;
const KEEP_MS = 7 * 24 * 3_600_000;
/** Deliveries that one statement removes; it ends within a fraction of a second. */
const PRUNE_BATCH = 5_000;
/** Concurrent attempts of one process, each to another endpoint. */
const MAX_CONCURRENT = 32;
/** How long a claim lasts. Longer than an attempt can take: a claim that expires belongs to a dead process. */
const CLAIM_MS = 2 * ATTEMPT_TIMEOUT_MS;

/**
 * Delivers published events at least once: retries with growing pauses until the receiver accepts them. The
 * deliveries of one endpoint are sent one after the other, so that a slow one holds up nobody else's.
 */
@Injectable()
export class WebhookDeliveryWorker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(WebhookDeliveryWorker.name);
  private readonly inWork = new Map<string, Promise<void>>();
  private readonly stopping = new AbortController();
  private readonly polling = new RepeatedWork(
    POLL_MS,
    () => this.deliverDue(),
    (error) => this.logger.warn('failed to find webhook deliveries', { error: errorMessage(error) }),
  );
  private readonly pruning = new RepeatedWork(
    PRUNE_MS,
    () => this.prune(),
    (error) => this.logger.warn('failed to prune webhook deliveries', { error: errorMessage(error) }),
  );
  private isStopping = false;
  private stopListening: (() => void) | null = null;

  constructor(
    private readonly deliveries: WebhookDeliveryRepository,
    private readonly endpoints: WebhookEndpointRepository,
    private readonly sender: OutboundWebhookSender,
    private readonly notifications: DatabaseNotifications,
    private readonly clock: Clock,
    private readonly metrics: WebhookMetrics,
  ) {}

  onApplicationBootstrap(): void {
    const look = (): void => void this.polling.now();
    this.stopListening = this.notifications.listen(DELIVERIES_CHANNEL, look, look);
    this.polling.start();
    this.pruning.start();
  }

  async onModuleDestroy(): Promise<void> {
    this.stopListening?.();
    this.isStopping = true;
    await Promise.all([this.polling.stop(), this.pruning.stop()]);
    this.stopping.abort();
    await Promise.all(this.inWork.values());
  }

  /** Sends an event of its own to an endpoint, enabled or not, and returns the delivery after the first attempt. */
  async test(endpoint: WebhookEndpoint): Promise<WebhookDelivery | null> {
    const event = { type: TEST_EVENT, data: { endpoint_id: endpoint.id } };
    const delivery = await this.deliveries.addClaimed(endpoint, event, this.claimEnd());
    await this.attempt(delivery, { isLast: true });
    return this.deliveries.findOfEndpoint(endpoint.id, delivery.id);
  }

  private async prune(): Promise<void> {
    const before = new Date(this.clock.now() - KEEP_MS);
    for (let removed = PRUNE_BATCH; removed === PRUNE_BATCH && !this.isStopping;) {
      removed = await this.deliveries.prune(before, PRUNE_BATCH);
    }
  }

  private async deliverDue(): Promise<void> {
    const free = MAX_CONCURRENT - this.inWork.size;
    if (free <= 0 || this.stopping.signal.aborted) {
      return;
    }
    for (const delivery of await this.deliveries.claim([...this.inWork.keys()], free, this.claimEnd())) {
      const { id: endpointId } = delivery.endpoint;
      const work = this.attempt(delivery, { isLast: false })
        .catch((error: unknown) => this.handleFailure(delivery, error))
        .finally(() => {
          this.inWork.delete(endpointId);
          // The endpoint may have more.
          void this.polling.now();
        });
      this.inWork.set(endpointId, work);
    }
  }

  private async attempt(delivery: ClaimedDelivery, { isLast }: { isLast: boolean }): Promise<void> {
    const secret = this.endpoints.secretOf(delivery.endpoint);
    const at = new Date(this.clock.now());
    // The last one belongs to a request, which may end while the process stops.
    const signal = isLast ? undefined : this.stopping.signal;
    const { gone, ...result } = await this.sender.attempt(delivery, secret, at, signal);
    const isOver = isLast && result.status === 'pending';
    await this.deliveries.settle(
      delivery,
      isOver ? { ...result, status: 'failed', nextAttemptAt: null } : result,
    );
    this.metrics.attempted(isOver ? 'failed' : result.status);
    if (gone) {
      await this.endpoints.disable(delivery.endpoint.id, 'The server answered with status 410: it is gone.');
    } else if (result.status === 'failed' && (await this.deliveries.nothingArrivedSince(delivery.id))) {
      await this.endpoints.disable(
        delivery.endpoint.id,
        'No delivery has arrived for two days. Enable the endpoint when its server works again.',
      );
    }
  }

  /** Hands an interrupted attempt to another process; if that fails, the claim expires. */
  private async handleFailure(delivery: ClaimedDelivery, error: unknown): Promise<void> {
    try {
      if (this.stopping.signal.aborted) {
        await this.deliveries.release(delivery);
        return;
      }
      this.logFailure(delivery, error);
    } catch (failure) {
      this.logFailure(delivery, failure);
    }
  }

  private logFailure({ id, endpoint }: ClaimedDelivery, error: unknown): void {
    this.logger.error('failed to attempt webhook delivery', {
      delivery_id: id,
      endpoint_id: endpoint.id,
      error: errorMessage(error),
    });
  }

  private claimEnd(): Date {
    return new Date(this.clock.now() + CLAIM_MS);
  }
}
