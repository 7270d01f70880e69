import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { AgentSecretDescription } from '../../../settings/agent-secrets.reader.js';

@ApiSchema({ name: 'SecretNameItem' })
class SandboxSecretDto implements AgentSecretDescription {
  @ApiProperty({ example: 'DEPLOY_TOKEN' })
  name: string;

  @ApiProperty({ type: String, nullable: true, example: 'Token of the deployment service' })
  description: string | null;
}

/** Answer of `GET /api/v1/sandboxes/{sandbox_id}/settings/secrets`: never a value. */
@ApiSchema({ name: 'SecretNamesResponse' })
export class SandboxSecretsDto {
  @ApiProperty({ type: [SandboxSecretDto] })
  secrets: SandboxSecretDto[];
}
