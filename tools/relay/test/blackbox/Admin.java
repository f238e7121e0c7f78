// SPDX-License-Identifier: GPL-2.0
// What brokers.py asks of brokers and librdkafka 2.0 cannot: a line of JSON comes, and one goes.
//
// Usage: java Admin BOOTSTRAP_SERVERS

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

public class Admin {
	private static final ObjectMapper json = new ObjectMapper();
	private final org.apache.kafka.clients.admin.Admin admin;

	private Admin(String servers) {
		admin = org.apache.kafka.clients.admin.Admin.create(Map.of(
			"bootstrap.servers", servers, "reconnect.backoff.max.ms", "500"));
	}

	private Object configure(JsonNode line) throws Exception {
		ConfigResource resource = new ConfigResource(
			ConfigResource.Type.valueOf(line.get("kind").asText()), line.get("name").asText());
		Collection<AlterConfigOp> changes = new ArrayList<>();
		line.get("config").properties().forEach(one -> changes.add(new AlterConfigOp(
			new ConfigEntry(one.getKey(), one.getValue().isNull() ? "" : one.getValue().asText()),
			one.getValue().isNull() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)));
		admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
		return null;
	}

	private Object deleteRecords(JsonNode line) throws Exception {
		Map<TopicPartition, RecordsToDelete> before = new HashMap<>();
		line.get("offsets").properties().forEach(one -> before.put(
			new TopicPartition(line.get("topic").asText(), Integer.parseInt(one.getKey())),
			RecordsToDelete.beforeOffset(one.getValue().asLong())));
		Map<String, Long> first = new TreeMap<>();
		for (var one : admin.deleteRecords(before).lowWatermarks().entrySet())
			first.put(String.valueOf(one.getKey().partition()), one.getValue().get().lowWatermark());
		return first;
	}

	private Object quota(JsonNode line) throws Exception {
		Map<String, String> entity = new HashMap<>();
		line.get("entity").properties().forEach(
			one -> entity.put(one.getKey(), one.getValue().asText()));
		List<ClientQuotaAlteration.Op> changes = new ArrayList<>();
		line.get("quotas").properties().forEach(one -> changes.add(
			new ClientQuotaAlteration.Op(one.getKey(),
				one.getValue().isNull() ? null : one.getValue().asDouble())));
		admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
			new ClientQuotaEntity(entity), changes))).all().get();
		return null;
	}

	private Object addUser(JsonNode line) throws Exception {
		// One request changes a user once.
		for (ScramMechanism mechanism : List.of(ScramMechanism.SCRAM_SHA_256,
							ScramMechanism.SCRAM_SHA_512))
			admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
				line.get("user").asText(), new ScramCredentialInfo(mechanism, 4096),
				line.get("password").asText()))).all().get();
		return null;
	}

	private List<AclBinding> bindings(JsonNode line) {
		ResourcePattern pattern = new ResourcePattern(
			ResourceType.valueOf(line.get("kind").asText()), line.get("name").asText(),
			line.get("prefixed").asBoolean() ? PatternType.PREFIXED : PatternType.LITERAL);
		List<AclBinding> bindings = new ArrayList<>();
		for (JsonNode operation : line.get("operations"))
			bindings.add(new AclBinding(pattern, new AccessControlEntry(
				"User:" + line.get("user").asText(), "*",
				AclOperation.valueOf(operation.asText()), AclPermissionType.ALLOW)));
		return bindings;
	}

	private Object allow(JsonNode line) throws Exception {
		admin.createAcls(bindings(line)).all().get();
		return null;
	}

	private Object disallow(JsonNode line) throws Exception {
		admin.deleteAcls(bindings(line).stream().map(AclBinding::toFilter).toList()).all().get();
		return null;
	}

	private Object transactions() throws Exception {
		Map<String, String> states = new TreeMap<>();
		for (TransactionListing one : admin.listTransactions().all().get())
			states.put(one.transactionalId(), one.state().toString());
		return states;
	}

	private Object features() throws Exception {
		Map<String, Short> levels = new TreeMap<>();
		admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach(
			(name, range) -> levels.put(name, range.maxVersionLevel()));
		return levels;
	}

	private Object run(JsonNode line) throws Exception {
		String operation = line.get("operation").asText();
		return switch (operation) {
		case "configure" -> configure(line);
		case "deleteRecords" -> deleteRecords(line);
		case "quota" -> quota(line);
		case "addUser" -> addUser(line);
		case "allow" -> allow(line);
		case "disallow" -> disallow(line);
		case "transactions" -> transactions();
		case "features" -> features();
		default -> throw new IllegalArgumentException("unknown: " + operation);
		};
	}

	public static void main(String[] args) throws Exception {
		Admin self = new Admin(args[0]);
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = in.readLine()) != null; ) {
			Map<String, Object> answer = new HashMap<>();
			try {
				answer.put("value", self.run(json.readTree(line)));
			} catch (Exception error) {
				Throwable cause = error.getCause() == null ? error : error.getCause();
				answer.put("error", cause.toString());
			}
			System.out.println(json.writeValueAsString(answer));
		}
		System.exit(0);
	}
}
