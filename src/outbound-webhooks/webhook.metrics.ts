import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type Instrument, Metrics } from '../observability/metrics.js';
import type { DeliveryStatus } from './webhook-delivery.entity.js';
import { WebhookDeliveryRepository } from './webhook-delivery.repository.js';

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
