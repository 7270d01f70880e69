import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { SecretDescription } from './custom-secret.repository.js';

@ApiSchema({ name: 'CustomSecretDescription' })
class SecretDescriptionDto implements SecretDescription {
  @ApiProperty({ example: 'DEPLOY_TOKEN' })
  name: string;

  @ApiProperty({ type: String, nullable: true, example: 'Token of the deployment service' })
  description: string | null;
}

/** Response of `GET /api/secrets`: never a value. */
@ApiSchema({ name: 'CustomSecrets' })
export class CustomSecretsDto {
  @ApiProperty({ type: [SecretDescriptionDto] })
  custom_secrets: SecretDescriptionDto[];
}

export function toCustomSecretsDto(secrets: readonly SecretDescription[]): CustomSecretsDto {
  return { custom_secrets: secrets.map(({ name, description }) => ({ name, description })) };
}
