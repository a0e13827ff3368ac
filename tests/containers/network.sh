# shellcheck shell=bash
# The engine's network: a bridge with a subnet of its own, and what lets packets through. Sourced by engine.sh.

bridge=         # the name of the docker bridge; podman's is ${bridge}p
subnet=         # the two first numbers of its addresses
forwarded=

# raise_network: docker's containers are in SUBNET.0/24, podman's in SUBNET.1/24. To make the bridge is to take its
# number: another ./dev may look for one at the same time.
raise_network() {
	local number
	for number in {31..16}; do
		subnet=172.$number
		bridge=cofferdam$number
		subnet_is_free && ip link add "$bridge" type bridge 2>/dev/null && break
		bridge=
	done
	[[ -n $bridge ]] || { say "this machine has no free subnet in 172.16.0.0/12"; return 1; }
	printf '%s %s %s\n' "$bridge" "$subnet" "$(</proc/sys/net/ipv4/ip_forward)" >"$engine/network"
	ip address add "$subnet.0.1/24" dev "$bridge" && ip link set "$bridge" up || return 1
	echo 1 >/proc/sys/net/ipv4/ip_forward
	firewall --insert
}

# subnet_is_free: whether no route but the default one leads there.
subnet_is_free() {
	[[ -z $(ip -4 route show root "$subnet.0.0/16") && -z $(ip -4 route show match "$subnet.0.0/16" | grep -v ^default) ]]
}

# lower_network: also after a ./dev that was killed, from what it wrote down.
lower_network() {
	[[ -f $engine/network ]] || return 0
	read -r bridge subnet forwarded <"$engine/network"
	firewall --delete || say "the firewall rules of $bridge are not all removed"
	ip link delete "$bridge" 2>/dev/null || true
	ip link delete "${bridge}p" 2>/dev/null || true
	echo "$forwarded" >/proc/sys/net/ipv4/ip_forward
	rm "$engine/network"
}

# firewall --insert|--delete: the containers of both bridges reach the network and this machine; what comes in
# must be an answer.
firewall() {
	local both=$bridge+ status=0
	iptables --wait --table nat "$1" POSTROUTING --source "$subnet.0.0/16" ! --destination "$subnet.0.0/16" \
		--jump MASQUERADE || status=1
	iptables --wait "$1" INPUT --in-interface "$both" --jump ACCEPT || status=1
	iptables --wait "$1" FORWARD --in-interface "$both" --jump ACCEPT || status=1
	iptables --wait "$1" FORWARD --out-interface "$both" --match conntrack --ctstate RELATED,ESTABLISHED \
		--jump ACCEPT || status=1
	return "$status"
}

# Without the plugins that write firewall rules: theirs are shared by every user of CNI, and stay.
write_podman_network() {
	cat >"$engine/cni/podman.conflist" <<-EOT
		{"cniVersion": "0.4.0", "name": "podman", "plugins": [
		  {"type": "bridge", "bridge": "${bridge}p", "isGateway": true, "hairpinMode": true,
		   "ipam": {"type": "host-local", "dataDir": "$engine/cni/addresses", "routes": [{"dst": "0.0.0.0/0"}],
		            "ranges": [[{"subnet": "$subnet.1.0/24", "gateway": "$subnet.1.1"}]]}},
		  {"type": "tuning"}]}
	EOT
}
