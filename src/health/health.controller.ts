import { randomUUID } from 'node:crypto';
import { Controller, Get, Header } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Public } from '../auth/auth.decorators.js';
import { DATABASE_PROBLEMS, databaseFailure } from '../common/errors/database-failure.js';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiOpenProblems } from '../common/openapi/problems.js';
import { Draining } from './draining.js';
import { productVersion } from '../common/product.js';

@ApiSchema({ name: 'Health' })
class HealthDto {
  @ApiProperty({ example: 'ok' })
  status: string;
}

@ApiSchema({ name: 'ServerInfo' })
class ServerInfoDto {
  @ApiProperty({ example: 'Slipway' })
  title: string;

  @ApiProperty({ description: 'Version of the service itself.', example: '0.1.0' })
  version: string;

  @ApiProperty({ type: 'integer', description: 'Seconds since this replica started.', example: 42 })
  uptime: number;

  @ApiProperty({
    format: 'uuid',
    description: 'Random, another one after each start of this replica. Not the variable `INSTANCE_ID`.',
    example: '9d0c3f7e-52b1-4c1d-8a66-3b0e7f4a2c15',
  })
  instance_id: string;
}

/** A JSON text. */
const OK = JSON.stringify('OK');

/** For load balancers and operators; open to everyone and free of secrets. */
@ApiTags('Health')
@Public()
@Controller()
export class HealthController {
  /** Of this start of the process. */
  private readonly instanceId = randomUUID();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly draining: Draining,
  ) {}

  @Get('health/live')
  @ApiOperation({ operationId: 'live_health_live_get', summary: 'The process answers' })
  @ApiOkResponse({ type: HealthDto, description: 'It does' })
  @ApiOpenProblems()
  live(): HealthDto {
    return { status: 'ok' };
  }

  @Get('health/ready')
  @ApiOperation({
    operationId: 'ready_health_ready_get',
    summary: 'The process answers, reaches its database and is not about to stop',
  })
  @ApiOkResponse({ type: HealthDto, description: 'It does' })
  @ApiOpenProblems(503)
  async ready(): Promise<HealthDto> {
    await this.requireReady();
    return { status: 'ok' };
  }

  @Get('health')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @ApiOperation({
    operationId: 'health_health_get',
    summary: 'Same as /health/live, in the form that clients of OpenHands know',
  })
  @ApiOkResponse({ schema: { type: 'string' }, description: 'It does', example: 'OK' })
  @ApiOpenProblems()
  health(): string {
    return OK;
  }

  @Get('ready')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @ApiOperation({
    operationId: 'ready_ready_get',
    summary: 'Same as /health/ready, in the form that clients of OpenHands know',
  })
  @ApiOkResponse({ schema: { type: 'string' }, description: 'It does', example: 'OK' })
  @ApiOpenProblems(503)
  async isReady(): Promise<string> {
    await this.requireReady();
    return OK;
  }

  @Get('alive')
  @ApiOperation({
    operationId: 'alive_alive_get',
    summary: 'Same as /health/live, under the name that older clients know',
  })
  @ApiOkResponse({ type: HealthDto, description: 'It does' })
  @ApiOpenProblems()
  alive(): HealthDto {
    return { status: 'ok' };
  }

  @Get('server_info')
  @ApiOperation({
    operationId: 'get_server_info_server_info_get',
    summary: 'Name, version and uptime of this replica, and which start of it this is',
  })
  @ApiOkResponse({ type: ServerInfoDto, description: 'This replica' })
  @ApiOpenProblems()
  serverInfo(): ServerInfoDto {
    return {
      title: 'Slipway',
      version: productVersion(),
      uptime: Math.floor(process.uptime()),
      instance_id: this.instanceId,
    };
  }

  private async requireReady(): Promise<void> {
    if (this.draining.hasBegun) {
      throw new DomainError('unavailable', 'unavailable', 'This replica is stopping; another one answers.', {
        retryAfterSeconds: 1,
      });
    }
    try {
      await this.dataSource.query('SELECT 1');
    } catch (error) {
      const { code, detail, retryAfterSeconds } = DATABASE_PROBLEMS[databaseFailure(error) ?? 'unreachable'];
      throw new DomainError('unavailable', code, detail, { cause: error, retryAfterSeconds });
    }
  }
}
