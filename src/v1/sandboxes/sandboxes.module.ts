import { Module } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { AppConfig } from '../../config/app-config.js';
import { MetricsModule } from '../../metrics/metrics.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { BackendReadiness } from './backend-readiness.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { createSandboxBackend } from './create-sandbox-backend.js';
import { HostIdentity } from './host-identity.js';
import { loadHostId } from './load-host-id.js';
import { RunningSandboxes } from './running-sandboxes.js';
import { SandboxActivity } from './sandbox-activity.js';
import { SandboxCreation } from './sandbox-creation.js';
import { SandboxHolds } from './sandbox-holds.js';
import { SandboxesController } from './sandboxes.controller.js';
import { SandboxHost } from './sandbox-host.entity.js';
import { SandboxIdleness } from './sandbox-idleness.js';
import { SandboxKeys } from './sandbox-keys.js';
import { SandboxKicks } from './sandbox-kicks.js';
import { SandboxListeners } from './sandbox-listeners.js';
import { SandboxPlaces } from './sandbox-places.js';
import { SandboxResume } from './sandbox-resume.js';
import { SandboxAutopsy } from './sandbox-autopsy.js';
import { SandboxCallback } from './sandbox-callback.js';
import { SandboxCensus } from './sandbox-census.js';
import { SandboxGauges } from './sandbox-gauges.js';
import { SandboxHosts } from './sandbox-hosts.js';
import { SandboxIdleWatch } from './sandbox-idle-watch.js';
import { SandboxLaunches } from './sandbox-launches.js';
import { SandboxLeases } from './sandbox-leases.js';
import { SandboxMonitor } from './sandbox-monitor.js';
import { SandboxRepairs } from './sandbox-repairs.js';
import { SandboxRest } from './sandbox-rest.js';
import { SandboxStarter } from './sandbox-starter.js';
import { SandboxSteps } from './sandbox-steps.js';
import { SandboxUpdates } from './sandbox-updates.js';
import { SandboxWorker } from './sandbox-worker.js';
import { SandboxAddresses } from './sandbox-addresses.js';
import { SandboxAnswers } from './sandbox-answers.js';
import { SandboxOrders } from './sandbox-orders.js';
import { SandboxesReader } from './sandboxes.reader.js';
import { SandboxesService } from './sandboxes.service.js';
import { UserWishes } from './user-wishes.js';
import { Sandbox } from './sandbox.entity.js';
import { SandboxStore } from './sandbox.store.js';
import { StoredSandboxKeys } from './stored.sandbox-keys.js';
import { UserSeparation } from './user-separation.js';

/** Sandboxes: rows that say what should be, and workers that make it so. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Sandbox, SandboxHost]),
    AgentServersModule,
    SandboxSpecsModule,
    IdempotencyModule,
    MetricsModule,
    SettingsModule,
  ],
  controllers: [SandboxesController],
  providers: [
    {
      provide: HostIdentity,
      inject: [AppConfig],
      useFactory: async ({ sandboxes, dataDir }: AppConfig): Promise<HostIdentity> =>
        new HostIdentity(sandboxes.hostId ?? (await loadHostId(dataDir))),
    },
    {
      provide: SandboxBackend,
      inject: [AppConfig, getDataSourceToken(), HostIdentity],
      useFactory: (
        config: AppConfig,
        dataSource: DataSource,
        { id }: HostIdentity,
      ): Promise<SandboxBackend> => createSandboxBackend(config, dataSource, id),
    },
    { provide: SandboxKeys, useClass: StoredSandboxKeys },
    BackendReadiness,
    RunningSandboxes,
    SandboxActivity,
    SandboxAddresses,
    SandboxAnswers,
    SandboxAutopsy,
    SandboxCallback,
    SandboxCensus,
    SandboxCreation,
    SandboxHolds,
    SandboxGauges,
    SandboxHosts,
    SandboxIdleWatch,
    SandboxIdleness,
    SandboxKicks,
    SandboxLaunches,
    SandboxLeases,
    SandboxListeners,
    SandboxMonitor,
    SandboxOrders,
    SandboxPlaces,
    SandboxRepairs,
    SandboxRest,
    SandboxResume,
    SandboxStarter,
    SandboxSteps,
    SandboxStore,
    SandboxUpdates,
    SandboxWorker,
    SandboxesReader,
    SandboxesService,
    UserSeparation,
    UserWishes,
  ],
  exports: [
    HostIdentity,
    RunningSandboxes,
    SandboxActivity,
    SandboxAddresses,
    SandboxCreation,
    SandboxHolds,
    SandboxKeys,
    SandboxListeners,
    SandboxPlaces,
    SandboxResume,
    SandboxStore,
    SandboxesService,
    UserWishes,
  ],
})
export class SandboxesModule {}
