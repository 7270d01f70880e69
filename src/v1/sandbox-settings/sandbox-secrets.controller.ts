import { Controller, Get, Header, Param } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { CurrentSandbox } from '../sandboxes/current-sandbox.decorator.js';
import { SandboxAuthenticated } from '../sandboxes/sandbox-authenticated.decorator.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-keys.js';
import { SandboxIdDto } from './dto/sandbox-id.dto.js';
import { SandboxSecretPathDto } from './dto/sandbox-secret.dto.js';
import type { SandboxSecretsDto } from './dto/sandbox-secrets.dto.js';
import { SandboxSecretsService } from './sandbox-secrets.service.js';
import { GetSandboxSecretOperation, ListSandboxSecretsOperation } from './sandbox-settings.operations.js';

@ApiTags('Sandboxes')
@SandboxAuthenticated()
@Controller('api/v1/sandboxes/:sandbox_id/settings/secrets')
export class SandboxSecretsController {
  constructor(private readonly secrets: SandboxSecretsService) {}

  @Get()
  @Header('Cache-Control', 'no-store')
  @ListSandboxSecretsOperation()
  async list(
    @CurrentSandbox() holder: SandboxKeyHolder,
    @Param() { sandbox_id: id }: SandboxIdDto,
  ): Promise<SandboxSecretsDto> {
    return { secrets: await this.secrets.list(holder, id) };
  }

  @Get(':secret_name')
  @Header('Cache-Control', 'no-store')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  @GetSandboxSecretOperation()
  async get(
    @CurrentSandbox() holder: SandboxKeyHolder,
    @Param() { sandbox_id: id, secret_name: name }: SandboxSecretPathDto,
  ): Promise<string> {
    return this.secrets.find(holder, id, name);
  }
}
