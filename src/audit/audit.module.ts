import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditController } from './api/audit.controller.js';
import { AuditEntry, AuditQueries, AuditRepository } from './audit.repository.js';
import { AuditRetentionWorker } from './audit-retention.worker.js';

/** Global, because every feature that changes something appends entries. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([AuditEntry])],
  controllers: [AuditController],
  providers: [
    { provide: AuditRepository, useFactory: () => new AuditRepository('service') },
    AuditQueries,
    AuditRetentionWorker,
  ],
  exports: [AuditRepository],
})
export class AuditModule {}
