import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { RateLimit } from '../auth/rate-limit.js';
import { DomainError } from '../common/errors/domain-error.js';
import { SharedLimit } from '@slipway/common/shared-limit.js';
import { LeasedWork, type LeasedWorkOptions } from '@slipway/database/leased-worker.js';
import { ServiceLeasedWorker } from '../database/leased-work.module.js';
import { type Instrument, Metrics } from '@slipway/telemetry/metrics.js';
import {
  type ClaimedDelivery,
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
        const { due, later } = await this.deliveries.leases.backlog();
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
      read: async () => [{ labels: {}, value: (await this.deliveries.leases.backlog()).oldestDueSeconds }],
    });
  }

  attempted(status: DeliveryStatus): void {
    this.attempts.record({ outcome: OUTCOME_OF[status] });
  }
}

/** Finds attempts that fall due, and those whose notification was lost. */
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
/** Longer than an attempt can take. */
const LEASE_MS = 2 * ATTEMPT_TIMEOUT_MS;

const OPTIONS: LeasedWorkOptions = {
  queue: 'webhook-delivery',
  places: MAX_IN_LANE,
  reserved: RESERVED,
  share: MAX_ENDPOINTS,
  slowAfterMs: SLOW_AFTER_MS,
  leaseMs: LEASE_MS,
  pollMs: POLL_MS,
  // The sender says when to try again; this is for what fails before it can.
  pauseMs: LEASE_MS,
};

/**
 * Delivers at least once, with growing pauses between attempts. An endpoint's deliveries are sent in turn, users take
 * turns, and slow attempts leave the common lane, so that users do not delay each other (docs/adr/0071).
 */
@Injectable()
export class WebhookDeliveryWorker extends ServiceLeasedWorker<ClaimedDelivery> {
  private readonly tests = new SharedLimit(MAX_TESTS, MAX_TESTS_OF_USER);
  /** Counting rows covers all replicas, but they vanish with their endpoint. */
  private readonly recentTests: RateLimit;
  private readonly pruning = new RepeatedWork(
    PRUNE_MS,
    () => this.prune(),
    (error) => this.logger.warn('failed to prune webhook deliveries', { error: errorMessage(error) }),
  );
  private startedAt = 0;

  constructor(
    private readonly deliveries: WebhookDeliveryRepository,
    private readonly endpoints: WebhookEndpointRepository,
    private readonly sender: OutboundWebhookSender,
    shared: LeasedWork,
    private readonly metrics: WebhookMetrics,
  ) {
    super(OPTIONS, shared, deliveries.leases, new Logger(WebhookDeliveryWorker.name));
    this.recentTests = new RateLimit(TESTS_PER_MINUTE, () => shared.clock.now());
  }

  override onApplicationBootstrap(): void {
    this.startedAt = this.shared.clock.now();
    super.onApplicationBootstrap();
    this.pruning.start();
  }

  override async onModuleDestroy(): Promise<void> {
    await Promise.all([this.pruning.stop(), super.onModuleDestroy()]);
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
      const delivery = await this.deliveries.addTest(endpoint, this.leaseEnd());
      if (typeof delivery === 'number') {
        throw tooManyTests(delivery);
      }
      if (delivery === null) {
        return null;
      }
      await this.deliver(delivery, null);
      return await this.deliveries.findOfEndpoint(endpoint.id, delivery.id);
    } finally {
      release();
    }
  }

  /** Sends what waits for an endpoint, as it may work now. */
  async hurry({ id }: WebhookEndpoint): Promise<void> {
    await this.deliveries.hurry(id, this.leaseEnd());
  }

  private async prune(): Promise<void> {
    const before = new Date(this.shared.clock.now() - KEEP_MS);
    for (let removed = PRUNE_BATCH; removed === PRUNE_BATCH && !this.stopping.signal.aborted;) {
      removed = await this.deliveries.prune(before, PRUNE_BATCH);
    }
  }

  protected async work(delivery: ClaimedDelivery, signal: AbortSignal): Promise<'ended'> {
    await this.deliver(delivery, signal);
    return 'ended';
  }

  /** @param signal null: the only attempt, of a request, which may end while the process stops */
  private async deliver(delivery: ClaimedDelivery, signal: AbortSignal | null): Promise<void> {
    const { endpointId: id } = delivery;
    const secrets = this.endpoints.secretsOf({ ...delivery, id });
    const at = new Date(this.shared.clock.now());
    const isLast = signal === null;
    const { gone, ...result } = await this.sender.attempt(delivery, secrets, at, signal ?? undefined);
    const isOver = isLast && result.status === 'pending';
    await this.deliveries.settle(
      delivery,
      isOver ? { ...result, status: 'failed', nextAttemptAt: null } : result,
    );
    this.metrics.attempted(isOver ? 'failed' : result.status);
    if (gone) {
      await this.endpoints.disable(id, 'The server answered with status 410: it is gone.');
    } else if (result.status !== 'delivered' && !isLast && at.getTime() - this.startedAt >= TRYING_MS) {
      await this.endpoints.disable(id, DEAD, new Date(at.getTime() - DEAD_AFTER_MS));
    }
  }

  private leaseEnd(): Date {
    return new Date(this.shared.clock.now() + LEASE_MS);
  }
}

function tooManyTests(retryAfterSeconds: number): DomainError {
  return new DomainError('rate_limited', 'A user may send 60 test deliveries a minute, four at a time.', {
    retryAfterSeconds,
  });
}
