import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { RateLimit } from '../auth/rate-limit.js';
import { Clock } from '../common/clock.js';
import { DomainError } from '../common/errors/domain-error.js';
import { SharedLimit } from '../common/shared-limit.js';
import { DatabaseNotifications } from '../database/notifications/database-notifications.js';
import { type Instrument, Metrics } from '../observability/metrics.js';
import {
  type ClaimedDelivery,
  DELIVERIES_CHANNEL,
  type DeliveryStatus,
  TESTS_PER_MINUTE,
  type WebhookDelivery,
  WebhookDeliveryRepository,
} from './webhook-delivery.repository.js';
import {
  MAX_ENDPOINTS,
  type WebhookEndpoint,
  WebhookEndpointRepository,
} from './webhook-endpoint.repository.js';
import { ATTEMPT_TIMEOUT_MS, OutboundWebhookSender } from './webhook.sender.js';

const OUTCOMES = ['delivered', 'retry', 'failed'] as const;
type Outcome = (typeof OUTCOMES)[number];

const OUTCOME_OF: Record<DeliveryStatus, Outcome> = {
  delivered: 'delivered',
  pending: 'retry',
  failed: 'failed',
};

@Injectable()
export class WebhookMetrics implements OnModuleInit {
  private readonly attempts: Instrument<{ outcome: typeof OUTCOMES }>;

  constructor(
    private readonly metrics: Metrics,
    private readonly deliveries: WebhookDeliveryRepository,
  ) {
    this.attempts = metrics.addCounter({
      name: 'slipway_webhook_attempts_total',
      help: 'Attempts to deliver to webhook endpoints: delivered, to be tried again, or given up',
      labels: { outcome: OUTCOMES },
    });
  }

  onModuleInit(): void {
    this.metrics.addGauge({
      name: 'slipway_webhook_deliveries_pending',
      help: 'Deliveries to webhook endpoints that are due, or wait for their next attempt',
      scope: 'database',
      label: 'state',
      read: async () => {
        const { due, later } = await this.deliveries.backlog();
        return new Map([
          ['due', due],
          ['later', later],
        ]);
      },
    });
    this.metrics.addSamples({
      name: 'slipway_webhook_oldest_due_seconds',
      help: 'For how long the delivery that is overdue for longest has been due',
      scope: 'database',
      labels: [],
      read: async () => [{ labels: {}, value: (await this.deliveries.backlog()).oldestDueSeconds }],
    });
  }

  attempted(status: DeliveryStatus): void {
    this.attempts.record({ outcome: OUTCOME_OF[status] });
  }
}

/** For attempts that fall due, and for lost notifications. */
const POLL_MS = 2_000;
const PRUNE_MS = 3_600_000;
const KEEP_MS = 7 * 24 * 3_600_000;
/** One statement; it ends within a fraction of a second. */
const PRUNE_BATCH = 5_000;
/** Attempts of one process in the common lane, each to another endpoint. */
const MAX_IN_LANE = 32;
/** Places in the lane for users who have no attempt under way. */
const RESERVED = 8;
/** A slower attempt leaves the lane; of those that hang, at most MAX_IN_LANE a second can follow each other. */
const SLOW_AFTER_MS = 1_000;
/** Test deliveries under way: of all users, and of one. */
const MAX_TESTS = 256;
const MAX_TESTS_OF_USER = 4;
const DEAD_AFTER_MS = 2 * 24 * 3_600_000;
/** The days may have passed while the service was off. */
const TRYING_MS = 3_600_000;
const DEAD = 'No delivery has arrived for two days. Enable the endpoint when its server works again.';
/** Longer than an attempt can take: an expired claim belongs to a dead process. */
const CLAIM_MS = 2 * ATTEMPT_TIMEOUT_MS;

/**
 * Delivers at least once, with growing pauses between attempts. An endpoint's deliveries are sent in turn, users take
 * turns, and slow attempts leave the common lane, so that users do not delay each other (docs/adr/0056).
 */
@Injectable()
export class WebhookDeliveryWorker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(WebhookDeliveryWorker.name);
  private readonly inWork = new Map<string, { userId: string; work: Promise<void> }>();
  private readonly inLane = new Set<string>();
  private readonly tests = new SharedLimit(MAX_TESTS, MAX_TESTS_OF_USER);
  /** Counting rows covers all replicas, but they vanish with their endpoint. */
  private readonly recentTests: RateLimit;
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
  private startedAt = 0;
  private isStopping = false;
  private stopListening: (() => void) | null = null;

  constructor(
    private readonly deliveries: WebhookDeliveryRepository,
    private readonly endpoints: WebhookEndpointRepository,
    private readonly sender: OutboundWebhookSender,
    private readonly notifications: DatabaseNotifications,
    private readonly clock: Clock,
    private readonly metrics: WebhookMetrics,
  ) {
    this.recentTests = new RateLimit(TESTS_PER_MINUTE, () => clock.now());
  }

  onApplicationBootstrap(): void {
    this.startedAt = this.clock.now();
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
    await Promise.all(Array.from(this.inWork.values(), ({ work }) => work));
  }

  /** Sends a test event and awaits the first attempt. @throws DomainError rate_limited (user), unavailable (all) */
  async test(endpoint: WebhookEndpoint): Promise<WebhookDelivery | null> {
    const release = this.tests.take(endpoint.userId);
    if (release === 'whole') {
      throw new DomainError('overloaded', 'Too many test deliveries are under way.', {
        retryAfterSeconds: 1,
      });
    }
    if (release === 'share') {
      throw tooManyTests(1);
    }
    try {
      const { isExceeded, resetSeconds } = this.recentTests.count(endpoint.userId);
      if (isExceeded) {
        throw tooManyTests(resetSeconds);
      }
      const delivery = await this.deliveries.addTest(endpoint, this.claimEnd());
      if (typeof delivery === 'number') {
        throw tooManyTests(delivery);
      }
      if (delivery === null) {
        return null;
      }
      await this.attempt(delivery, { isLast: true });
      return await this.deliveries.findOfEndpoint(endpoint.id, delivery.id);
    } finally {
      release();
    }
  }

  /** Sends what waits for an endpoint, as it may work now. */
  async hurry({ id }: WebhookEndpoint): Promise<void> {
    await this.deliveries.hurry(id, this.claimEnd());
  }

  private async prune(): Promise<void> {
    const before = new Date(this.clock.now() - KEEP_MS);
    for (let removed = PRUNE_BATCH; removed === PRUNE_BATCH && !this.isStopping;) {
      removed = await this.deliveries.prune(before, PRUNE_BATCH);
    }
  }

  private async deliverDue(): Promise<void> {
    const isFull = await this.fill(MAX_IN_LANE - RESERVED, MAX_ENDPOINTS);
    if (isFull) {
      await this.fill(MAX_IN_LANE, 1);
    }
  }

  /** Begins attempts of users with fewer than `share` under way; true if more may be due. */
  private async fill(places: number, share: number): Promise<boolean> {
    const free = places - this.inLane.size;
    if (free > 0 && !this.stopping.signal.aborted) {
      const endpointIds = [...this.inWork.keys()];
      const userIds = Array.from(this.inWork.values(), ({ userId }) => userId);
      const underWay = { endpointIds, userIds, share };
      for (const delivery of await this.deliveries.claim(underWay, free, this.claimEnd())) {
        this.begin(delivery);
      }
    }
    return this.inLane.size >= places;
  }

  private begin(delivery: ClaimedDelivery): void {
    const { id: endpointId, userId } = delivery.endpoint;
    const leaveLane = (): void => {
      this.inLane.delete(delivery.id);
      void this.polling.now();
    };
    const slow = setTimeout(leaveLane, SLOW_AFTER_MS);
    const work = this.attempt(delivery, { isLast: false })
      .catch((error: unknown) => this.handleFailure(delivery, error))
      .finally(() => {
        clearTimeout(slow);
        this.inWork.delete(endpointId);
        leaveLane();
      });
    this.inLane.add(delivery.id);
    this.inWork.set(endpointId, { userId, work });
  }

  private async attempt(delivery: ClaimedDelivery, { isLast }: { isLast: boolean }): Promise<void> {
    const secrets = this.endpoints.secretsOf(delivery.endpoint);
    const at = new Date(this.clock.now());
    // The last one belongs to a request, which may end while the process stops.
    const signal = isLast ? undefined : this.stopping.signal;
    const { gone, ...result } = await this.sender.attempt(delivery, secrets, at, signal);
    const isOver = isLast && result.status === 'pending';
    await this.deliveries.settle(
      delivery,
      isOver ? { ...result, status: 'failed', nextAttemptAt: null } : result,
    );
    this.metrics.attempted(isOver ? 'failed' : result.status);
    if (gone) {
      await this.endpoints.disable(delivery.endpoint.id, 'The server answered with status 410: it is gone.');
    } else if (result.status !== 'delivered' && !isLast && at.getTime() - this.startedAt >= TRYING_MS) {
      await this.endpoints.disable(delivery.endpoint.id, DEAD, new Date(at.getTime() - DEAD_AFTER_MS));
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

function tooManyTests(retryAfterSeconds: number): DomainError {
  return new DomainError('rate_limited', 'A user may send 60 test deliveries a minute, four at a time.', {
    retryAfterSeconds,
  });
}
