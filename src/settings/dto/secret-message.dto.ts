import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** Answer to a change of custom secrets. */
@ApiSchema({ name: 'CustomSecretMessage' })
export class SecretMessageDto {
  @ApiProperty({ description: 'What was done.', example: 'Secret stored' })
  message: string;
}
