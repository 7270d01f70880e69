import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdempotencyKey, IdempotencyPurge, IdempotentRequests } from './idempotent-requests.js';

/** Requests that may be sent twice. */
@Module({
  imports: [TypeOrmModule.forFeature([IdempotencyKey])],
  providers: [IdempotentRequests, IdempotencyPurge],
  exports: [IdempotentRequests],
})
export class IdempotencyModule {}
