import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** Answer of `POST /api/unset-provider-tokens`. */
@ApiSchema({ name: 'GitProvidersUnset' })
export class GitProvidersUnsetDto {
  @ApiProperty({ example: 'Unset Git provider tokens' })
  message: string;
}

export function toGitProvidersUnsetDto(): GitProvidersUnsetDto {
  return { message: 'Unset Git provider tokens' };
}
